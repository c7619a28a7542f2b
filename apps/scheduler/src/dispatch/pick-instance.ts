/** Which instance takes the next batch. Pure: the lane owns the instances and their state. */

/** What is known of one model instance: at most one batch executes there and one more is staged behind it. */
export interface InstanceLoad {
  readonly name: string;
  readonly batches: number;
  /** When it was last given a batch, microseconds; -Infinity = never. */
  readonly lastUsedUs: number;
  /** Whether its device has a place for another batch. */
  hasPlace(staged: boolean): boolean;
}

/** The most batches that may be with one instance. */
export const MAX_BATCHES = 2;

/**
 * An idle instance, or for a staged batch one that executes a single batch; among equals the least recently used, so
 * that work is spread and the batch longest under way, which ends first, gets the staged one.
 */
export function pickInstance<I extends InstanceLoad>(instances: Iterable<I>, staged: boolean): I | undefined {
  const wanted = staged ? MAX_BATCHES - 1 : 0;
  let best: I | undefined;
  for (const instance of instances) {
    if (instance.batches === wanted && (!best || instance.lastUsedUs < best.lastUsedUs) && instance.hasPlace(staged)) best = instance;
  }
  return best;
}
