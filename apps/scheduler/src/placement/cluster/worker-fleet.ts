/**
 * What the workers say they have: devices, loads, instances. Fed by the events of the connections, whether this process
 * owns the placement or not, so that a new owner starts from what is there. Invariant: a worker that is not connected is
 * not in it.
 */
import { loadKey, versionKey } from '@paceline/core';
import type { Device } from '@paceline/protocol';
import type { VersionMemory } from '@paceline/telemetry';
import type { InstanceEvent, LoadSpec, ModelAnnouncement, RemoteWorkerListener, WorkerHello } from '@paceline/worker-rpc';

export interface FleetWorker {
  readonly id: string;
  readonly devices: readonly Device[];
  draining: boolean;
  /** By {@link loadKey}. */
  readonly loads: Map<string, ModelAnnouncement>;
}

export interface FleetListener {
  /** Something may be different now. */
  onChange(): void;
  /** Named across the cluster, `<worker>/<instance>`. */
  onInstance?(event: InstanceEvent): void;
  /** A worker has come. */
  onJoin?(worker: string): void;
}

type Events = Pick<RemoteWorkerListener, 'onUp' | 'onDown' | 'onModel' | 'onModelGone' | 'onInstance' | 'onDraining'>;

/** The name of an instance across the cluster. */
export const instanceName = (worker: string, local: string): string => `${worker}/${local}`;

export const announcementKey = ({ spec }: Pick<ModelAnnouncement, 'spec'>): string => loadKey(spec);

export class WorkerFleet implements Events {
  readonly workers = new Map<string, FleetWorker>();
  readonly #listeners = new Set<FleetListener>();

  /** @returns a function that ends the subscription */
  subscribe(listener: FleetListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  onUp({ worker: id, devices, draining, models }: WorkerHello): void {
    this.#drop(id, 'the worker has connected again');
    const worker: FleetWorker = { id, devices, draining, loads: new Map() };
    this.workers.set(id, worker);
    for (const model of models) this.#set(worker, model);
    for (const listener of this.#listeners) listener.onJoin?.(id);
    this.#changed();
  }

  onDown(id: string, reason: string): void {
    this.#drop(id, reason);
    this.#changed();
  }

  onModel(id: string, model: ModelAnnouncement): void {
    const worker = this.workers.get(id);
    if (worker === undefined) return;
    this.#set(worker, model);
    this.#changed();
  }

  onModelGone(id: string, model: string, version: string, generation: number): void {
    const worker = this.workers.get(id);
    const load = worker?.loads.get(loadKey({ model, version, generation }));
    if (worker === undefined || load === undefined) return;
    this.#setReady(id, load, [], 'the model was unloaded');
    worker.loads.delete(announcementKey(load));
    this.#changed();
  }

  onInstance(id: string, event: InstanceEvent): void {
    const worker = this.workers.get(id);
    const load = worker?.loads.get(loadKey(event));
    // Passive instances are announced by nobody.
    if (worker === undefined || !load?.instances.includes(event.instance)) return;
    const others = load.ready.filter((instance) => instance !== event.instance);
    const ready = event.state === 'ready' ? [...others, event.instance] : others;
    this.#setReady(id, load, ready, event.reason);
    worker.loads.set(announcementKey(load), { ...load, ready });
    this.#changed();
  }

  onDraining(id: string): void {
    const worker = this.workers.get(id);
    if (worker === undefined || worker.draining) return;
    worker.draining = true;
    this.#changed();
  }

  /** What this process has done itself and the worker may not have announced yet. */
  noteState(id: string, load: ModelAnnouncement): void {
    const worker = this.workers.get(id);
    const known = worker?.loads.get(announcementKey(load));
    if (known?.state === 'retiring' || known?.state === load.state) return;
    this.onModel(id, known === undefined ? load : { ...known, state: load.state });
  }

  /** Workers that stay and serve that load: it is active there and an instance is up. */
  serving(model: string, version: string, generation: number): string[] {
    const key = loadKey({ model, version, generation });
    return [...this.workers.values()]
      .filter(({ draining, loads }) => {
        const load = loads.get(key);
        return !draining && load?.state === 'active' && load.ready.length > 0;
      })
      .map(({ id }) => id);
  }

  /** Workers that have that load and are not stopping it. */
  holders(load: Pick<LoadSpec, 'model' | 'version' | 'generation'>): { worker: string; draining: boolean; load: ModelAnnouncement }[] {
    const key = loadKey(load);
    return [...this.workers.values()].flatMap(({ id, draining, loads }) => {
      const held = loads.get(key);
      return held === undefined || held.state === 'retiring' ? [] : [{ worker: id, draining, load: held }];
    });
  }

  /** Resident memory of each version's instances over all workers, as far as they have told it. */
  memory(): Iterable<VersionMemory> {
    const versions = new Map<string, VersionMemory>();
    for (const { loads } of this.workers.values()) {
      for (const { spec, memoryBytes } of loads.values()) {
        if (memoryBytes === 0) continue;
        const { model, version } = spec;
        const before = versions.get(versionKey(spec))?.memoryBytes ?? 0;
        versions.set(versionKey(spec), { model, version, memoryBytes: before + memoryBytes });
      }
    }
    return versions.values();
  }

  /** The highest number that any load has. */
  highestGeneration(): number {
    let highest = 0;
    for (const { loads } of this.workers.values()) for (const { spec } of loads.values()) highest = Math.max(highest, spec.generation);
    return highest;
  }

  #set(worker: FleetWorker, model: ModelAnnouncement): void {
    const key = announcementKey(model);
    const before = worker.loads.get(key) ?? { ...model, ready: [] };
    this.#setReady(worker.id, before, model.ready, 'announced');
    worker.loads.set(key, model);
  }

  #drop(id: string, reason: string): void {
    const worker = this.workers.get(id);
    if (worker === undefined) return;
    for (const load of worker.loads.values()) this.#setReady(id, load, [], reason);
    this.workers.delete(id);
  }

  /** Tells the difference between what was up and what is. */
  #setReady(id: string, { spec, ready: before }: ModelAnnouncement, after: readonly string[], reason: string): void {
    const { model, version, generation } = spec;
    const tell = (local: string, state: InstanceEvent['state']): void => {
      const event = { model, version, generation, instance: instanceName(id, local), state, reason };
      for (const listener of this.#listeners) listener.onInstance?.(event);
    };
    for (const local of before) if (!after.includes(local)) tell(local, 'down');
    for (const local of after) if (!before.includes(local)) tell(local, 'ready');
  }

  #changed(): void {
    for (const listener of this.#listeners) listener.onChange();
  }
}
