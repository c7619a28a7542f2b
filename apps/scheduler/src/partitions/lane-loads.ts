/**
 * Keeps the lanes of one partition in step with what workers announce: opens a lane when a load of this partition is
 * active, lets instances come and go, and ends it when its load is retired everywhere, after which the workers may stop
 * its instances. Invariant: a worker that retires a load is told `release` once, after nothing of that load is with it.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Lanes } from '../batching/lanes.js';
import type { Holder, Load } from '../workers/loads.js';
import { clusterSharesOf } from '../workers/shared-devices.js';
import type { WorkerRegistry } from '../workers/worker-registry.js';

export interface LaneLoadsPorts {
  readonly clock: Clock;
  readonly lanes: Lanes;
  readonly workers: WorkerRegistry;
  readonly isHome: (load: Load) => boolean;
  /** A lane takes requests of that load's version now. */
  readonly onOpen: (load: Load) => void;
}

/**
 * From the news that a load is retired everywhere until its lane closes: what gateways sent before they routed elsewhere
 * is still under way, and after a takeover it is sent again.
 */
const RETIRE_GRACE_US = 250_000;
const TAKEOVER_GRACE_US = 2_000_000;
/** A load that no worker has may come back with one; a lane without any is ended after this time. */
const ORPHAN_US = 60_000_000;

interface OpenLane {
  readonly load: Load;
  /** Instances that are up, `<worker>/<local name>`. */
  readonly instances: Set<string>;
}

export class LaneLoads {
  /** Lanes that were opened here and have not ended, by load. */
  readonly #open = new Map<string, OpenLane>();
  readonly #closing = new Map<string, Timer>();
  /** `<load>@<worker>` that have been or will be told to release. */
  readonly #released = new Set<string>();
  readonly #takenOverUs: number;
  #stopped = false;

  constructor(private readonly ports: LaneLoadsPorts) {
    this.#takenOverUs = ports.clock.nowUs();
  }

  /** @param wanted requests wait here for the load's version, whether or not this is its partition */
  sync(load: Load, wanted: boolean): void {
    if (this.#stopped) return;
    const { lanes, isHome } = this.ports;
    const key = keyOf(load);
    const open = this.#open.get(key);
    if (open) this.#syncInstances(load, open);
    else if ((wanted || isHome(load)) && this.#mayOpen(load, wanted)) {
      const instances = usable(load, this.ports.workers);
      const { model, version, generation, spec } = load;
      this.#open.set(key, { load, instances: new Set(instances) });
      const { devices, loads } = this.ports.workers;
      const deviceOf = clusterSharesOf((worker) => loads.find(model, version, generation)?.holders.get(worker)?.placed, devices);
      const { config, inputs } = spec;
      lanes.open({ model, version, generation, config, inputs, instances, instancesVary: true, deviceOf });
      this.ports.onOpen(load);
      this.#dropOlder(load);
    }
    if (this.#open.has(key) || isHome(load)) this.#retire(load);
  }

  /** Nothing is opened, closed or released any more. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#closing.values()) timer.cancel();
  }

  /** An active load above what is open; one that is retired everywhere only for requests that have nobody else. */
  #mayOpen(load: Load, wanted: boolean): boolean {
    const current = this.ports.lanes.find(load.model, load.version);
    if (current && current.spec.generation >= load.generation) return false;
    const holders = [...load.holders.values()];
    if (holders.some(({ state }) => state === 'active')) return true;
    return wanted && !current && holders.some((holder) => holder.state === 'retiring' && !this.#released.has(releaseKey(load, holder)));
  }

  #syncInstances(load: Load, open: OpenLane): void {
    const { model, version, generation } = load;
    const now = new Set(usable(load, this.ports.workers));
    const tell = (instance: string, state: 'ready' | 'down'): void =>
      this.ports.lanes.onInstance({ model, version, generation, instance, state, reason: '' });
    for (const instance of open.instances) {
      if (now.has(instance)) continue;
      open.instances.delete(instance);
      tell(instance, 'down');
    }
    for (const instance of now) {
      if (open.instances.has(instance)) continue;
      open.instances.add(instance);
      tell(instance, 'ready');
    }
  }

  /** What was handed over to a newer load's lane ends with its batches. */
  #dropOlder({ model, version, generation }: LoadName): void {
    for (const [key, { load }] of this.#open) {
      if (load.model !== model || load.version !== version || load.generation >= generation) continue;
      void this.ports.lanes.drain(model, version, load.generation).then(() => this.#open.delete(key));
    }
  }

  #retire(load: Load): void {
    for (const key of this.#released) if (!this.#isRetiring(load, key)) this.#released.delete(key);
    const retiring = [...load.holders.values()].filter(({ state }) => state === 'retiring');
    if (retiring.length === 0 && load.holders.size > 0) return;
    if (this.#isServedElsewhere(load)) {
      for (const holder of retiring) this.#releaseWhenClear(load, holder);
      return;
    }
    const key = keyOf(load);
    const orphan = load.holders.size === 0;
    if (this.#closing.has(key) || (orphan && !this.#open.has(key))) return;
    const sinceUs = this.ports.clock.nowUs() - this.#takenOverUs;
    const graceUs = orphan ? ORPHAN_US : Math.max(RETIRE_GRACE_US, TAKEOVER_GRACE_US - sinceUs);
    this.#closing.set(
      key,
      this.ports.clock.setTimer(graceUs, () => void this.#close(load)),
    );
  }

  /** False for the key of a release of this load that is over: the worker stopped it or has it as a new one. */
  #isRetiring(load: Load, key: string): boolean {
    if (!key.startsWith(`${keyOf(load)}@`)) return true;
    return load.holders.get(key.slice(key.lastIndexOf('@') + 1))?.state === 'retiring';
  }

  /** What is queued for a load of a holder that retires goes to other instances of it, or to a newer load. */
  #isServedElsewhere(load: Load): boolean {
    const current = this.ports.lanes.find(load.model, load.version);
    if (current && current.spec.generation > load.generation) return true;
    return [...load.holders.values()].some(({ state, worker }) => state === 'active' && this.ports.workers.isOpen(worker));
  }

  async #close({ model, version, generation }: Load): Promise<void> {
    const key = keyOf({ model, version, generation });
    const { loads } = this.ports.workers;
    const before = loads.find(model, version, generation);
    if (before && this.#isServedElsewhere(before)) {
      this.#closing.delete(key);
      return this.#retire(before);
    }
    await this.ports.lanes.drain(model, version, generation);
    this.#open.delete(key);
    this.#closing.delete(key);
    const after = loads.find(model, version, generation);
    if (this.#stopped || !after) return;
    for (const holder of after.holders.values()) if (holder.state === 'retiring') this.#releaseWhenClear(after, holder);
    if ([...after.holders.values()].some(({ state }) => state === 'active')) this.sync(after, false);
  }

  #releaseWhenClear(load: Load, { worker }: Holder): void {
    const { model, version, generation } = load;
    const key = releaseKey(load, { worker });
    if (this.#released.has(key)) return;
    this.#released.add(key);
    this.ports.workers.flights.whenClear(worker, model, version, generation, () => {
      if (!this.#stopped) this.ports.workers.find(worker)?.release(model, version, generation);
    });
  }
}

/**
 * Instances that may be given batches: of holders that are active, and of those that retire only where no holder is
 * active, since what is queued then has nowhere else to go.
 */
function usable(load: Load, workers: WorkerRegistry): string[] {
  const holders = [...load.holders.values()].filter(({ worker }) => workers.isOpen(worker));
  const active = holders.filter(({ state }) => state === 'active');
  const from = active.length > 0 ? active : holders.filter(({ state }) => state === 'retiring');
  return from.flatMap(({ worker, ready }) => [...ready].map((name) => `${worker}/${name}`));
}

type LoadName = Pick<Load, 'model' | 'version' | 'generation'>;

const keyOf = ({ model, version, generation }: LoadName): string => `${model}/${version}/${generation}`;
const releaseKey = (load: LoadName, { worker }: Pick<Holder, 'worker'>): string => `${keyOf(load)}@${worker}`;
