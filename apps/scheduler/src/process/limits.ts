/** What the flags say about the lanes. */
import type { ServeOptions } from '@paceline/config';

/**
 * The bound that a lane puts on queueing where its model names none: a moment behind the gateway's timer, whose error
 * says more.
 */
export function laneQueueTimeoutUs({ limits }: ServeOptions): number {
  return limits.requestTimeoutMs * 1000 + 1_000_000;
}
