/**
 * The memory of workers while a plan is made: what is free, what comes free when retiring loads have gone, and what the
 * plan itself has given away. A worker whose memory is not known has room for everything.
 */
import type { Device } from '@paceline/protocol';
import { versionKey, type PlacedLoad, type PlacementNeeds, type PlacementWorker } from './target.js';

interface Pool {
  free: number;
  /** Will be free as well, once what is retiring has stopped. */
  coming: number;
}

export class Room {
  readonly #pools = new Map<string, Pool>();
  readonly #counts = new Map<string, number>();
  readonly #known = new Map<string, number>();

  constructor(private readonly workers: readonly PlacementWorker[]) {
    for (const { loads } of workers) {
      for (const load of loads) {
        const key = versionKey(load);
        this.#known.set(key, Math.max(this.#known.get(key) ?? 0, load.memoryBytes));
      }
    }
    for (const worker of workers) {
      this.#counts.set(worker.id, worker.loads.filter(({ state }) => state !== 'retiring').length);
      for (const kind of ['cpu', 'gpu'] as const) this.#pools.set(`${worker.id} ${kind}`, this.#poolOf(worker, kind));
    }
  }

  #poolOf({ devices, loads }: PlacementWorker, kind: Device['kind']): Pool {
    const own = devices.filter((device) => device.kind === kind);
    const total = own.some(({ memoryBytes }) => memoryBytes === 0) ? Infinity : own.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
    const used = (retiring: boolean): number =>
      loads.reduce((sum, load) => (load.kind === kind && (load.state === 'retiring') === retiring ? sum + this.#sizeOf(load) : sum), 0);
    const coming = used(true);
    return { free: total - used(false) - coming, coming };
  }

  /** What is known of it anywhere serves for a load that tells nothing yet. */
  #sizeOf(load: PlacedLoad): number {
    return load.memoryBytes > 0 ? load.memoryBytes : (this.#known.get(versionKey(load)) ?? 0);
  }

  /** Memory that a replica takes: the estimate, or more where it was seen to take more. */
  sizeOf(version: { readonly model: string; readonly version: string; readonly needs: PlacementNeeds }): number {
    return Math.max(version.needs.memoryBytes, this.#known.get(versionKey(version)) ?? 0);
  }

  free(worker: string, kind: Device['kind']): number {
    return this.#pool(worker, kind).free;
  }

  /** Free memory and what comes free. */
  prospect(worker: string, kind: Device['kind']): number {
    const { free, coming } = this.#pool(worker, kind);
    return free + coming;
  }

  take(worker: string, kind: Device['kind'], bytes: number): void {
    this.#pool(worker, kind).free -= bytes;
    this.#counts.set(worker, this.loadsOn(worker) + 1);
  }

  /** A load that the plan retires: its memory comes free. */
  giveUp(worker: string, load: PlacedLoad): void {
    this.#pool(worker, load.kind).coming += this.#sizeOf(load);
    this.#counts.set(worker, this.loadsOn(worker) - 1);
  }

  /** Loads that stay on the worker, those of this plan included. */
  loadsOn(worker: string): number {
    return this.#counts.get(worker) ?? 0;
  }

  bytesOf(load: PlacedLoad): number {
    return this.#sizeOf(load);
  }

  #pool(worker: string, kind: Device['kind']): Pool {
    return this.#pools.get(`${worker} ${kind}`) ?? { free: 0, coming: 0 };
  }
}

/** Whether the worker has the devices, whatever their memory. */
export function hasDevices({ devices }: PlacementWorker, { kind, devices: named }: PlacementNeeds): boolean {
  if (!devices.some((device) => device.kind === kind)) return false;
  return named.every((id) => devices.some((device) => device.id === id));
}
