/**
 * The instances of one lane and what is with them: at most one running and one staged batch each, and no more than the
 * device has places for where it is shared. A name that comes up again after it went down is a new instance; batches of
 * the old one no longer count for it.
 */
import type { Capacity } from '@paceline/core';
import { MAX_BATCHES, pickInstance, type InstanceLoad } from '../dispatch/pick-instance.js';
import type { DeviceShare } from './device-credits.js';
import type { LaneBatch } from './lane-batch.js';

export class LaneInstance implements InstanceLoad {
  /** The one executing first, then the staged one. */
  readonly flights: LaneBatch[] = [];
  lastUsedUs = -Infinity;

  constructor(
    readonly name: string,
    readonly device?: DeviceShare,
    readonly wake: () => void = () => undefined,
  ) {}

  get batches(): number {
    return this.flights.length;
  }

  /** Whether the device has a place for another batch. */
  hasPlace(staged: boolean): boolean {
    const { device } = this;
    return device === undefined || device.slot.hasPlace(this.wake, device.limit, staged);
  }

  add(flight: LaneBatch): void {
    this.flights.push(flight);
    this.device?.slot.take(this.wake, this.flights.length > 1);
  }

  /** @returns the batch that executes now */
  remove(flight: LaneBatch): LaneBatch | undefined {
    const at = this.flights.indexOf(flight);
    if (at >= 0) {
      this.flights.splice(at, 1);
      this.device?.slot.free(at > 0, at === 0 && this.flights.length > 0);
    }
    return this.flights[0];
  }
}

export interface LaneInstancesOptions {
  /** Batches must end in the order they were sent: only one instance works at a time. */
  readonly ordered: boolean;
  /** Instances that are not among the first ones may come up as well. */
  readonly vary?: boolean | undefined;
  /** Where instances share devices with those of other lanes; undefined = the instance has its device to itself. */
  readonly deviceOf?: ((instance: string) => DeviceShare | undefined) | undefined;
  /** Called when a device that is shared has a place again. */
  readonly wake?: () => void;
}

export class LaneInstances {
  readonly #live = new Map<string, LaneInstance>();
  /** Undefined: any name may come up. */
  readonly #names: ReadonlySet<string> | undefined;
  readonly #capacity = { idle: 0, stageable: 0, live: 0 };
  readonly #wake: () => void;

  constructor(
    names: readonly string[],
    private readonly options: LaneInstancesOptions,
  ) {
    this.#names = options.vary ? undefined : new Set(names);
    this.#wake = options.wake ?? (() => undefined);
    for (const name of names) this.#add(name);
  }

  /** Live instances. */
  get size(): number {
    return this.#live.size;
  }

  /** @returns whether that made an instance available. Names that the lane was not opened with (passive ones) are ignored. */
  up(name: string): boolean {
    if (this.#names?.has(name) === false || this.#live.has(name)) return false;
    this.#add(name);
    return true;
  }

  down(name: string): void {
    const slot = this.#live.get(name)?.device?.slot;
    this.#live.delete(name);
    if (slot && ![...this.#live.values()].some(({ device }) => device?.slot === slot)) slot.leave(this.#wake);
  }

  /** None is left: the lane has ended. */
  clear(): void {
    for (const name of [...this.#live.keys()]) this.down(name);
  }

  /** What can be given out now. The object is reused by the next call. */
  capacity(): Capacity {
    const capacity = this.#capacity;
    const { ordered } = this.options;
    capacity.idle = 0;
    capacity.stageable = 0;
    let busy = 0;
    for (const instance of this.#live.values()) {
      if (instance.batches === 0) {
        if (instance.hasPlace(false)) capacity.idle += 1;
      } else {
        busy += 1;
        if (instance.batches < MAX_BATCHES && instance.hasPlace(true)) capacity.stageable += 1;
      }
    }
    capacity.live = ordered ? Math.min(1, this.#live.size) : this.#live.size;
    if (ordered && busy > 0) capacity.idle = 0;
    return capacity;
  }

  /** Whether requests of the lane wait because nothing can be given out. */
  setWaiting(waits: boolean): void {
    if (!this.options.deviceOf) return;
    for (const { device } of this.#live.values()) device?.slot.setWaiting(this.#wake, waits);
  }

  pick(staged: boolean): LaneInstance | undefined {
    return pickInstance(this.#live.values(), staged);
  }

  #add(name: string): void {
    const device = this.options.deviceOf?.(name);
    device?.slot.join(this.#wake);
    this.#live.set(name, new LaneInstance(name, device, this.#wake));
  }
}
