/**
 * Devices that instances of several lanes share, such as the GPU of a worker: of all lanes together one batch runs there
 * and one is staged, or as many as the lane's own model has instances on it, so that two lanes never believe the same
 * device idle. Invariant: whoever frees a place wakes the other lanes, the one that was given a batch longest ago first;
 * and nobody stages a batch behind its own while another lane waits for the device.
 */

/** One lane's share of a device. */
export interface DeviceShare {
  readonly slot: DeviceSlot;
  /** Batches that may run there before this lane sends another, and that may be staged; at least 1. */
  readonly limit: number;
}

export class DeviceSlot {
  running = 0;
  staged = 0;
  /** Wakes each lane with an instance here; those that were given a batch longest ago first. */
  readonly #lanes = new Set<() => void>();
  /** Those that have requests and found no place. */
  readonly #waiting = new Set<() => void>();

  /** A lane has an instance here. */
  join(wake: () => void): void {
    this.#lanes.add(wake);
  }

  leave(wake: () => void): void {
    this.#lanes.delete(wake);
    this.#waiting.delete(wake);
  }

  setWaiting(wake: () => void, waits: boolean): void {
    if (waits) this.#waiting.add(wake);
    else this.#waiting.delete(wake);
  }

  /** Whether a lane with that share may send another batch. */
  hasPlace(wake: () => void, limit: number, staged: boolean): boolean {
    if (!staged) return this.running < limit;
    return this.staged < limit && this.#waiting.size === Number(this.#waiting.has(wake));
  }

  /** A lane has sent a batch. */
  take(wake: () => void, staged: boolean): void {
    if (staged) this.staged += 1;
    else this.running += 1;
    if (!staged) this.#waiting.delete(wake);
    if (this.#lanes.delete(wake)) this.#lanes.add(wake);
  }

  /** A batch has ended. @param next whether a staged one of the same instance began */
  free(staged: boolean, next: boolean): void {
    if (staged || next) this.staged -= 1;
    if (!staged && !next) this.running -= 1;
    for (const wake of this.#lanes) wake();
  }
}

export class DeviceCredits {
  readonly #slots = new Map<string, DeviceSlot>();

  /** @param device named across the cluster, `<worker>/gpu:0` */
  of(device: string): DeviceSlot {
    let slot = this.#slots.get(device);
    if (!slot) this.#slots.set(device, (slot = new DeviceSlot()));
    return slot;
  }

  /** The worker is gone for good. */
  forget(worker: string): void {
    for (const device of this.#slots.keys()) if (device.startsWith(`${worker}/`)) this.#slots.delete(device);
  }
}
