/**
 * The instances of one lane and what is with them: at most one running and one staged batch each. A name that comes up
 * again after it went down is a new instance; batches of the old one no longer count for it.
 */
import type { Capacity } from '@paceline/core';
import { MAX_BATCHES, pickInstance, type InstanceLoad } from '../dispatch/pick-instance.js';
import type { LaneBatch } from './lane-batch.js';

export class LaneInstance implements InstanceLoad {
  /** The one executing first, then the staged one. */
  readonly flights: LaneBatch[] = [];
  lastUsedUs = -Infinity;

  constructor(readonly name: string) {}

  get batches(): number {
    return this.flights.length;
  }
}

export class LaneInstances {
  readonly #live = new Map<string, LaneInstance>();
  /** Undefined: any name may come up. */
  readonly #names: ReadonlySet<string> | undefined;
  readonly #capacity = { idle: 0, stageable: 0, live: 0 };

  /**
   * @param ordered batches must end in the order they were sent: only one instance works at a time
   * @param vary instances that are not among `names` may come up as well
   */
  constructor(
    names: readonly string[],
    private readonly ordered: boolean,
    vary = false,
  ) {
    this.#names = vary ? undefined : new Set(names);
    for (const name of names) this.#live.set(name, new LaneInstance(name));
  }

  /** Live instances. */
  get size(): number {
    return this.#live.size;
  }

  /** @returns whether that made an instance available. Names that the lane was not opened with (passive ones) are ignored. */
  up(name: string): boolean {
    if (this.#names?.has(name) === false || this.#live.has(name)) return false;
    this.#live.set(name, new LaneInstance(name));
    return true;
  }

  down(name: string): void {
    this.#live.delete(name);
  }

  /** What can be given out now. The object is reused by the next call. */
  capacity(): Capacity {
    const capacity = this.#capacity;
    capacity.idle = 0;
    capacity.stageable = 0;
    let busy = 0;
    for (const { batches } of this.#live.values()) {
      if (batches === 0) capacity.idle += 1;
      else {
        busy += 1;
        if (batches < MAX_BATCHES) capacity.stageable += 1;
      }
    }
    capacity.live = this.ordered ? Math.min(1, this.#live.size) : this.#live.size;
    if (this.ordered && busy > 0) capacity.idle = 0;
    return capacity;
  }

  pick(staged: boolean): LaneInstance | undefined {
    return pickInstance(this.#live.values(), staged);
  }
}
