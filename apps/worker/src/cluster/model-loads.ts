/**
 * The loads of this worker and their life: loading, loaded (its instances are up and wait to be activated), active,
 * retiring (its lane empties itself), gone. Invariant: every load ends; one that nobody activates or releases ends by
 * itself after a limit, so a placement owner that vanished leaves nothing behind.
 */
import type { Clock, Timer } from '@paceline/clock';
import { isPassive } from '@paceline/core';
import { ServingError } from '@paceline/protocol';
import type { InstanceEvent, LoadReport, LoadSpec, ModelAnnouncement, SchedulerSession, WorkerLink } from '@paceline/worker-rpc';
import { modelKey } from '../instances/loaded-model.js';
import type { InstanceMemory } from '../supervision/observer.js';

export interface ModelLoadsPorts {
  readonly worker: Pick<WorkerLink, 'load' | 'unload'> & { instanceMemory(): Iterable<InstanceMemory> };
  readonly clock: Clock;
  /** Tells every connected scheduler. */
  readonly tellAll: (tell: (session: SchedulerSession) => void) => void;
}

export interface ModelLoadsLimits {
  /** How long a lane may take to empty itself, milliseconds; default 60 s. */
  readonly releaseLimitMs?: number;
  /** How long a load waits for its activation when the scheduler that wanted it is gone, milliseconds; default 30 s. */
  readonly adoptionLimitMs?: number;
}

/** Of what is announced, `loading` and `stopping` are known here alone. */
type State = 'loading' | ModelAnnouncement['state'] | 'stopping';

interface Load {
  readonly key: string;
  readonly spec: LoadSpec;
  readonly fingerprint: string;
  readonly report: Promise<LoadReport>;
  readonly stopped: PromiseWithResolvers<void>;
  state: State;
  instances: readonly string[];
  devices: readonly string[] | undefined;
  readonly down: Set<string>;
  /** Who wants it; undefined = that one is gone. */
  wantedBy: SchedulerSession | undefined;
  limit: Timer | undefined;
  announcedBytes: number;
}

const MEMORY_LOOK_US = 5_000_000;
/** Smaller changes of a model's memory are not announced. */
const MEMORY_STEP = 0.1;

export class ModelLoads {
  readonly #loads = new Map<string, Load>();
  readonly #releaseLimitUs: number;
  readonly #adoptionLimitUs: number;
  #memoryLook: Timer;

  constructor(
    private readonly ports: ModelLoadsPorts,
    limits: ModelLoadsLimits = {},
  ) {
    this.#releaseLimitUs = 1000 * (limits.releaseLimitMs ?? 60_000);
    this.#adoptionLimitUs = 1000 * (limits.adoptionLimitMs ?? 30_000);
    this.#memoryLook = ports.clock.setTimer(MEMORY_LOOK_US, () => this.#lookAtMemory());
  }

  /** The same load asked for again, by another scheduler too, is the one that is there. @throws ServingError */
  load(session: SchedulerSession, spec: LoadSpec, fingerprint: string): Promise<LoadReport> {
    const key = modelKey(spec.model, spec.version, spec.generation);
    const known = this.#loads.get(key);
    if (known) {
      if (known.fingerprint !== fingerprint || known.state === 'retiring' || known.state === 'stopping')
        return Promise.reject(exists(known));
      known.wantedBy = session;
      if (known.state === 'loading' || known.state === 'loaded') known.limit?.cancel();
      return known.report;
    }
    const { warmup: _, ...announced } = spec;
    const load: Load = {
      key,
      spec: announced,
      fingerprint,
      report: this.ports.worker.load(spec),
      stopped: Promise.withResolvers(),
      state: 'loading',
      instances: [],
      devices: undefined,
      down: new Set(),
      wantedBy: session,
      limit: undefined,
      announcedBytes: 0,
    };
    this.#loads.set(key, load);
    return load.report.then(
      (report) => {
        const active = report.instances.map((name) => !isPassive(spec.config, name));
        load.instances = report.instances.filter((_, i) => active[i]);
        load.devices = report.devices?.filter((_, i) => active[i]);
        if (load.state === 'loading') this.#enter(load, 'loaded');
        return report;
      },
      (error: unknown) => {
        this.#forget(load);
        throw error;
      },
    );
  }

  /** @throws ServingError NOT_FOUND (`unknown_load`) */
  activate(model: string, version: string, generation: number): void {
    const load = this.#loads.get(modelKey(model, version, generation));
    if (load?.state === 'active') return;
    if (load?.state !== 'loaded') {
      const found = load ? `is ${load.state}` : 'is not loaded';
      throw new ServingError('NOT_FOUND', `model '${model}' version ${version} generation ${generation} ${found}`, {
        reason: 'unknown_load',
      });
    }
    load.limit?.cancel();
    this.#enter(load, 'active');
  }

  /** Resolves when its instances have stopped. */
  async retire(model: string, version: string, generation: number): Promise<void> {
    const load = this.#loads.get(modelKey(model, version, generation));
    if (!load) return;
    if (load.state === 'active') {
      this.#enter(load, 'retiring');
      this.#limit(load, this.#releaseLimitUs);
    } else if (load.state === 'loading' || load.state === 'loaded') void this.#stop(load);
    await load.stopped.promise;
  }

  release(model: string, version: string, generation: number): void {
    const load = this.#loads.get(modelKey(model, version, generation));
    if (load?.state === 'retiring') void this.#stop(load);
  }

  disconnect(session: SchedulerSession): void {
    for (const load of this.#loads.values()) {
      if (load.wantedBy !== session) continue;
      load.wantedBy = undefined;
      if (load.state === 'loading' || load.state === 'loaded') this.#limit(load, this.#adoptionLimitUs);
    }
  }

  onInstance(event: InstanceEvent): void {
    const load = this.#loads.get(modelKey(event.model, event.version, event.generation));
    if (!load) return;
    if (event.state === 'ready') load.down.delete(event.instance);
    else load.down.add(event.instance);
    if (load.state !== 'loading') this.ports.tellAll((session) => session.onInstance(event));
  }

  announcements(): ModelAnnouncement[] {
    return [...this.#loads.values()].flatMap((load) => this.#announcement(load) ?? []);
  }

  close(): void {
    this.#memoryLook.cancel();
    for (const load of this.#loads.values()) load.limit?.cancel();
  }

  #enter(load: Load, state: ModelAnnouncement['state']): void {
    load.state = state;
    this.#announce(load);
  }

  #announce(load: Load): void {
    const model = this.#announcement(load);
    if (!model) return;
    load.announcedBytes = model.memoryBytes;
    this.ports.tellAll((session) => session.onModel(model));
  }

  #announcement(load: Load): ModelAnnouncement | undefined {
    const { spec, fingerprint, instances, devices, down, state } = load;
    if (state === 'loading' || state === 'stopping') return undefined;
    const ready = instances.filter((name) => !down.has(name));
    return { spec, fingerprint, instances, ...(devices && { devices }), ready, state, memoryBytes: this.#memoryOf(load) };
  }

  #memoryOf({ spec }: Load): number {
    let bytes = 0;
    for (const { model, version, residentBytes } of this.ports.worker.instanceMemory()) {
      if (model === spec.model && version === spec.version) bytes += residentBytes;
    }
    return Math.round(bytes);
  }

  #lookAtMemory(): void {
    for (const load of this.#loads.values()) {
      if (Math.abs(this.#memoryOf(load) - load.announcedBytes) > MEMORY_STEP * load.announcedBytes) this.#announce(load);
    }
    this.#memoryLook = this.ports.clock.setTimer(MEMORY_LOOK_US, () => this.#lookAtMemory());
  }

  #limit(load: Load, limitUs: number): void {
    load.limit?.cancel();
    load.limit = this.ports.clock.setTimer(limitUs, () => void this.#stop(load));
  }

  async #stop(load: Load): Promise<void> {
    if (load.state === 'stopping') return;
    load.state = 'stopping';
    load.limit?.cancel();
    await load.report.catch(() => undefined);
    const { model, version, generation } = load.spec;
    await this.ports.worker.unload(model, version, generation);
    this.#forget(load);
    this.ports.tellAll((session) => session.onModelGone(model, version, generation));
  }

  #forget(load: Load): void {
    load.limit?.cancel();
    this.#loads.delete(load.key);
    load.stopped.resolve();
  }
}

function exists({ spec, state, fingerprint }: Load): ServingError {
  const text = `model '${spec.model}' version ${spec.version} generation ${spec.generation} is ${state} already, with the fingerprint '${fingerprint}'`;
  return new ServingError('ALREADY_EXISTS', text, { reason: 'load_exists' });
}
