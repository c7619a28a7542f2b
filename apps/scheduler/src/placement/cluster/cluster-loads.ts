/**
 * Loads models on the workers of the cluster and keeps them loaded as workers come and go: brings what is there to what
 * the planner wants, again and again. Invariants: for one load one worker is asked one thing at a time; nothing is asked
 * of any worker once the right to decide is over.
 */
import type { Clock, Timer } from '@paceline/clock';
import {
  loadKey,
  isPassive,
  needsOf,
  planPlacement,
  type PlacedLoad,
  type PlacementAction,
  type PlacementSnapshot,
  type PlacementWorker,
  type Unplaced,
} from '@paceline/core';
import { ServingError } from '@paceline/protocol';
import type { LoadReport, LoadSpec, ModelAnnouncement, RemoteWorker } from '@paceline/worker-rpc';
import type { LoadHost } from '../load-host.js';
import { isTroubleOfWorker, LoadTarget } from './load-target.js';
import { judgeLoad } from './load-verdict.js';
import { findAdoptable } from './adoption.js';
import { choosePartition, workersOf } from './load-partition.js';
import { reportOfAll } from './load-report.js';
import type { FleetWorker, WorkerFleet } from './worker-fleet.js';
import { WorkerRequests } from './worker-requests.js';

export interface ClusterLoadsPorts {
  readonly clock: Clock;
  readonly fleet: WorkerFleet;
  /** The connection to that worker; undefined = there is none. */
  readonly worker: (id: string) => RemoteWorker | undefined;
  /** Whether this process may still decide. */
  valid(): boolean;
  /** Memory of one instance as far as it can be told from the files, bytes; 0 = not known. */
  estimate(spec: LoadSpec): Promise<number>;
  /** A load has come a step further; one sentence. */
  onProgress(model: string, text: string): void;
  /** A worker failed to load what others serve. It is asked again later. */
  onFailure(worker: string, spec: LoadSpec, error: ServingError): void;
}

export interface ClusterLoadsOptions {
  /** How many there are. */
  readonly partitions: number;
  /** How long a load waits for a worker to come, microseconds; Infinity = without end. Read at each load. */
  readonly waitUs: () => number;
  /** How long it waits for one that fits, where others are there. */
  readonly fitWaitUs: number;
}

/** More workers than this are not put at risk by one load. */
const MAX_LOST = 3;

export class ClusterLoads implements LoadHost {
  readonly #targets = new Map<string, LoadTarget>();
  readonly #requests: WorkerRequests;
  readonly #unsubscribe: () => void;
  #timer: Timer | undefined;
  #planning = false;
  #sweeping = false;
  #closed = false;

  constructor(
    private readonly ports: ClusterLoadsPorts,
    private readonly options: ClusterLoadsOptions,
  ) {
    this.#requests = new WorkerRequests(ports.worker, () => this.#plan());
    this.#unsubscribe = ports.fleet.subscribe({ onChange: () => this.#plan() });
  }

  /** From now on what belongs to nothing is retired: every model that is to be served is known. */
  beginSweep(): void {
    this.#sweeping = true;
    this.#plan();
  }

  /** Asks nothing of any worker any more; loads that wait are refused. */
  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    this.#timer?.cancel();
    const error = new ServingError('UNAVAILABLE', 'another scheduler decides about models now', { reason: 'placement_moved' });
    for (const target of this.#targets.values()) target.settle(error);
  }

  async load(spec: LoadSpec, fingerprint: string): Promise<LoadReport & { readonly generation: number }> {
    const startedUs = this.ports.clock.nowUs();
    const bytesPerInstance = await this.ports.estimate(spec);
    if (this.#closed || !this.ports.valid()) {
      throw new ServingError('UNAVAILABLE', 'another scheduler decides about models now', { reason: 'placement_moved' });
    }
    const adopted = this.#adoptable(spec, fingerprint);
    const generation = adopted?.generation ?? spec.generation;
    const target = new LoadTarget({ ...spec, generation }, fingerprint, bytesPerInstance);
    this.#targets.set(loadKey(target.spec), target);
    target.spec = { ...target.spec, partition: adopted?.partition ?? this.#partitionFor(target) };
    try {
      await this.#first(target, startedUs, adopted !== undefined);
    } catch (error) {
      await this.unload(spec.model, spec.version, generation);
      throw error;
    }
    const report = reportOfAll(target.reports.values(), this.ports.fleet.holders(target.spec));
    return { ...report, generation, durationMs: (this.ports.clock.nowUs() - startedUs) / 1000 };
  }

  /** The partition of a load that this has brought up or adopted. */
  partitionOf(load: Pick<LoadSpec, 'model' | 'version' | 'generation'>): number | undefined {
    return this.#targets.get(loadKey(load))?.spec.partition;
  }

  async activate(model: string, version: string, generation: number): Promise<void> {
    const key = loadKey({ model, version, generation });
    const target = this.#targets.get(key);
    if (target === undefined) return;
    target.active = true;
    this.#plan();
    await this.#requests.answered(key);
  }

  async unload(model: string, version: string, generation: number): Promise<void> {
    const key = loadKey({ model, version, generation });
    this.#targets.delete(key);
    if (this.#closed) return;
    // What is being loaded has to come up before it can be retired.
    await this.#requests.answered(key);
    for (const worker of this.ports.fleet.workers.values()) {
      const state = worker.loads.get(key)?.state;
      if (state === 'loaded' || state === 'active') this.#retire({ kind: 'retire', worker: worker.id, model, version, generation });
    }
    await this.#requests.answered(key);
  }

  /** An equal load that workers have, in a partition that there is. */
  #adoptable(spec: LoadSpec, fingerprint: string): LoadSpec | undefined {
    return findAdoptable(spec, fingerprint, this.ports.fleet, (worker, { spec: { partition, ...other } }) => {
      const key = loadKey(other);
      return (
        partition !== undefined &&
        partition < this.options.partitions &&
        !this.#targets.has(key) &&
        this.#requests.of(worker, key) !== 'retiring'
      );
    });
  }

  /** Where the new target's requests are to go, given the workers that it is planned for. */
  #partitionFor(target: LoadTarget): number {
    const snapshot = this.#snapshot(this.ports.clock.nowUs());
    const { actions } = planPlacement(snapshot);
    const placed = [...this.#targets.values()].map(({ spec, needs }) => ({ spec, needs, workers: workersOf(spec, snapshot, actions) }));
    const own = placed.find(({ spec }) => spec === target.spec) ?? { spec: target.spec, needs: target.needs, workers: [] };
    return choosePartition(
      own,
      placed.filter((each) => each !== own),
      this.ports.fleet,
      this.options.partitions,
    );
  }

  /** Resolves when every worker that was asked has answered and one of them at least serves it. */
  #first(target: LoadTarget, startedUs: number, adopted: boolean): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const deadlineUs = startedUs + this.options.waitUs();
      const fitDeadlineUs = Math.min(deadlineUs, startedUs + this.options.fitWaitUs);
      target.pending = { deadlineUs, fitDeadlineUs, adopted, lost: 0, told: '', resolve, reject };
      this.#plan();
    });
  }

  #plan(): void {
    // Carrying out an action changes the fleet, which asks for a plan: the loop below makes it.
    if (this.#planning || this.#closed || !this.ports.valid()) return;
    this.#planning = true;
    try {
      const nowUs = this.ports.clock.nowUs();
      const { actions, unplaced } = planPlacement(this.#snapshot(nowUs));
      for (const action of actions) this.#carryOut(action);
      for (const target of [...this.#targets.values()]) this.#judge(target, unplaced, nowUs);
      this.#arm(nowUs);
    } finally {
      this.#planning = false;
    }
  }

  #snapshot(nowUs: number): PlacementSnapshot {
    return {
      workers: [...this.ports.fleet.workers.values()].map((worker) => this.#workerToPlan(worker)),
      targets: [...this.#targets.values()].map((target) => target.toPlan(nowUs)),
    };
  }

  #workerToPlan({ id, devices, draining, loads }: FleetWorker): PlacementWorker {
    const placed = new Map<string, PlacedLoad>();
    for (const [key, load] of loads) placed.set(key, this.#loadToPlan(id, key, load));
    for (const [key, target] of this.#targets) {
      if (placed.has(key) || this.#requests.of(id, key) !== 'loading') continue;
      const { model, version, generation } = target.spec;
      const { needs } = target;
      placed.set(key, { model, version, generation, state: 'loading', kind: needs.kind, memoryBytes: needs.memoryBytes });
    }
    return { id, devices, draining, loads: [...placed.values()] };
  }

  #loadToPlan(worker: string, key: string, { spec, fingerprint, state, memoryBytes }: ModelAnnouncement): PlacedLoad {
    const { model, version, generation, config } = spec;
    const target = this.#targets.get(key);
    // Another owner has given that number to another load: it has to go first.
    const foreign = target !== undefined && target.fingerprint !== fingerprint;
    if (foreign && state !== 'retiring') this.#retire({ kind: 'retire', worker, model, version, generation });
    const busy = this.#requests.of(worker, key);
    const estimate = target?.needs ?? needsOf(config, 0);
    const seen = foreign ? 'retiring' : busy === 'activating' ? 'active' : (busy ?? state);
    return { model, version, generation, state: seen, kind: estimate.kind, memoryBytes: memoryBytes || estimate.memoryBytes };
  }

  #carryOut(action: PlacementAction): void {
    const target = this.#targets.get(loadKey(action));
    if (action.kind === 'retire') {
      if (target !== undefined || this.#sweeping) this.#retire(action);
    } else if (target !== undefined) {
      if (action.kind === 'load') this.#load(action.worker, target);
      else this.#activate(action.worker, target);
    }
  }

  #load(worker: string, target: LoadTarget): void {
    const { spec, fingerprint } = target;
    const loaded = (report: LoadReport): void => {
      target.reports.set(worker, report);
      const instances = report.instances.filter((name) => !isPassive(spec.config, name));
      const { warmup: _, ...announced } = spec;
      this.ports.fleet.noteState(worker, { spec: announced, fingerprint, instances, ready: instances, state: 'loaded', memoryBytes: 0 });
    };
    const failed = (error: ServingError): void => this.#loadFailed(worker, target, error);
    this.#requests.ask(worker, loadKey(spec), 'loading', (remote) => remote.load(spec, fingerprint).then(loaded), failed);
  }

  #loadFailed(worker: string, target: LoadTarget, error: ServingError): void {
    if (this.#closed) return;
    const { pending, spec } = target;
    target.exclude(worker, error, this.ports.clock.nowUs());
    if (pending === undefined) return this.ports.onFailure(worker, spec, error);
    if (error.reason === 'worker_lost') pending.lost += 1;
    else if (!isTroubleOfWorker(error.code)) return target.settle(error);
    if (pending.lost >= MAX_LOST) target.settle(error);
  }

  #activate(worker: string, { spec }: LoadTarget): void {
    const { model, version, generation } = spec;
    const key = loadKey(spec);
    const activated = (): void => {
      const load = this.ports.fleet.workers.get(worker)?.loads.get(key);
      if (load !== undefined) this.ports.fleet.noteState(worker, { ...load, state: 'active' });
    };
    const failed = (error: ServingError): void => {
      // The worker has lost the load without a word: it is loaded there again.
      if (error.reason === 'unknown_load') this.ports.fleet.onModelGone(worker, model, version, generation);
    };
    this.#requests.ask(worker, key, 'activating', (remote) => remote.activate(model, version, generation).then(activated), failed);
  }

  #retire({ worker, model, version, generation }: PlacementAction): void {
    const gone = (): void => this.ports.fleet.onModelGone(worker, model, version, generation);
    const key = loadKey({ model, version, generation });
    this.#requests.ask(worker, key, 'retiring', (remote) => remote.retire(model, version, generation).then(gone), gone);
  }

  /** Ends the load that waits for this target, or says how far it is. */
  #judge(target: LoadTarget, unplaced: readonly Unplaced[], nowUs: number): void {
    const { pending, spec } = target;
    if (pending === undefined) return;
    const key = loadKey(spec);
    const up = this.ports.fleet.holders(spec).filter(({ draining }) => !draining).length;
    const why = unplaced.find((each) => loadKey(each) === key)?.why;
    const verdict = judgeLoad(target, pending, { loading: this.#requests.loading(key), up, why, nowUs });
    if (verdict.kind === 'ended') target.settle(verdict.error);
    else if (pending.told !== verdict.text) this.ports.onProgress(spec.model, (pending.told = verdict.text));
  }

  /** Wakes when a load has waited long enough, or a worker that failed may be asked again. */
  #arm(nowUs: number): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const due: number[] = [];
    for (const target of this.#targets.values()) {
      const retryUs = target.nextRetryUs(nowUs);
      if (retryUs !== undefined) due.push(retryUs);
      const { pending } = target;
      for (const deadlineUs of pending === undefined ? [] : [pending.deadlineUs, pending.fitDeadlineUs]) {
        if (deadlineUs > nowUs && deadlineUs !== Infinity) due.push(deadlineUs);
      }
    }
    if (due.length > 0) this.#timer = this.ports.clock.setTimer(Math.min(...due) - nowUs, () => this.#plan());
  }
}
