/**
 * Under a queue delay: when each shape group must go, so that a group whose turn it is not is found in O(log n) when it is
 * full or its delay is over. Invariant: after `refresh` a group that holds requests is in the heap, an empty one is not.
 */
import { fullRows } from './batch-former.js';
import { IndexedHeap } from './indexed-heap.js';
import type { PendingQueue, ShapeGroup } from './pending-queue.js';
import type { BatchPolicy } from './policy.js';

export class DueGroups {
  /** By group index; key = when the group must go, -Infinity = it is full. */
  readonly #due = new IndexedHeap();
  readonly #delayUs: number;

  constructor(
    private readonly policy: BatchPolicy,
    private readonly queue: PendingQueue,
  ) {
    this.#delayUs = policy.maxQueueDelayUs;
  }

  /** The earliest time at which a group must go; Infinity when there is none. */
  get nextUs(): number {
    return this.#due.minKey;
  }

  /** When the delay of a group that holds requests is over. */
  delayOverUs(group: ShapeGroup): number {
    return this.queue.oldestUs(group) + this.#delayUs;
  }

  /** A request was added at the end of `group`. */
  added(group: ShapeGroup): void {
    if (this.#delayUs > 0 && (group.count === 1 || group.rows >= fullRows(this.policy, group))) this.refresh(group);
  }

  /** Anything else changed in `group`. */
  refresh(group: ShapeGroup): void {
    if (this.#delayUs === 0) return;
    if (group.count === 0) this.#due.delete(group.index);
    else this.#due.set(group.index, group.rows >= fullRows(this.policy, group) ? -Infinity : this.delayOverUs(group));
  }

  /** A group other than `group` that is full or due. Its key may be stale, because the learned peak moves: refreshed first. */
  otherThan(group: ShapeGroup, nowUs: number): ShapeGroup | undefined {
    for (let tries = 0; tries < 4 && this.#due.minKey <= nowUs; tries++) {
      const other = this.queue.groupAt(this.#due.minHandle);
      const staleUs = this.#due.minKey;
      this.refresh(other);
      if (this.#due.minKey === staleUs) return other === group ? undefined : other;
    }
    return undefined;
  }
}
