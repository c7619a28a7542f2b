/** One request inside a lane, from its arrival until it is answered or its client has left. */
import type { Envelope } from '@paceline/protocol';

/**
 * - `queued`: waits in the batcher under `handle`
 * - `alone`: waits to be executed in a batch of its own
 * - `quarantined`: waits to be executed in a batch of its own where it can harm nobody
 * - `staged`: with the worker, behind a batch that executes
 * - `running`: with the worker, executing
 * - `done`: answered or cancelled; nothing may be sent for it
 */
export type ItemState = 'queued' | 'alone' | 'quarantined' | 'staged' | 'running' | 'done';

export interface LaneItem {
  readonly envelope: Envelope;
  readonly enqueuedUs: number;
  state: ItemState;
  /** Of the batcher; meaningful only while `queued`. */
  handle: number;
  /** Times a batch with it had begun to execute when its instance died. */
  losses: number;
  /** Times its instance died, or refused it, before it began. */
  falseStarts: number;
  /** The client left while it executed: whatever becomes of it, nobody waits. */
  cancelled: boolean;
}

/** Whether its gateway has given it up: it must not begin any more. */
export function isOverdue({ envelope, enqueuedUs }: LaneItem, nowUs: number): boolean {
  return envelope.remainingUs !== undefined && nowUs - enqueuedUs >= envelope.remainingUs;
}

/** Whether it counts as waiting in the statistics. */
export function isPending(state: ItemState): boolean {
  return state === 'queued' || state === 'alone' || state === 'quarantined' || state === 'staged';
}
