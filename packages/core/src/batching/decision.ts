/** What the batcher can decide. Closed: a shell handles every kind, logs and counts the reasons; the batcher never does. */
import type { Handle } from './request-table.js';

/**
 * Why a batch was released: `full` no further request fits (maximum, learned peak, or the next request is too large),
 * `preferred` a preferred size was reached, `delay` nothing more was worth waiting for (queue delay over, or none set),
 * `shape` as `delay`, but requests of another shape waited that could otherwise have joined, `drain` the lane is closing.
 */
export type DispatchReason = 'full' | 'preferred' | 'delay' | 'shape' | 'drain';

export interface Dispatch {
  readonly kind: 'dispatch';
  /** In the order of the batch; they have left the queue, so the handles may be reused by the next enqueue. */
  readonly handles: readonly Handle[];
  readonly rows: number;
  readonly reason: DispatchReason;
  /** True: for an instance that is still busy; the members count against their queue sizes until `started`. */
  readonly staged: boolean;
  readonly expired: readonly Handle[];
  readonly shed: readonly Handle[];
}

export interface Wait {
  readonly kind: 'wait';
  /** When to decide again if nothing happens before; Infinity = no need. */
  readonly untilUs: number;
  /** `gather` (for the rest of a burst) wants a precise timer; `stream` (for what a steady stream brings) does not need one. */
  readonly why: 'empty' | 'busy' | 'delay' | 'gather' | 'stream';
  readonly expired: readonly Handle[];
  readonly shed: readonly Handle[];
}

/**
 * `expired` requests have left the queue: their timeout passed under action REJECT, or the bound on queueing did. So have
 * those of `shed`: they can no longer be answered within the latency objective.
 */
export type Decision = Dispatch | Wait;

/**
 * A request is refused at the door: `queue_full` its level holds `limit` requests already, `latency_objective` so many
 * wait before it that its answer would come too late.
 */
export interface Shed {
  readonly kind: 'shed';
  readonly code: 'RESOURCE_EXHAUSTED';
  readonly reason: 'queue_full' | 'latency_objective';
  /** Requests the level may hold, or waiting now. */
  readonly limit: number;
  readonly retryAfterMs: number;
}

/** Instances that can take a batch. */
export interface Capacity {
  /** Alive, with no batch. */
  readonly idle: number;
  /** Alive, with one batch and room for a staged one. */
  readonly stageable: number;
  /** Alive, whatever they do; where it is not given, those that can take a batch. */
  readonly live?: number;
}
