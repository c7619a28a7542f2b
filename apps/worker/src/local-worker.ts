/**
 * The worker of the embedded server: a {@link WorkerLink} whose instances run in hosts on this machine. It owns which
 * models are loaded; instances own their batches, the fleet owns the processes.
 */
import { readdir, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock, type Clock } from '@paceline/clock';
import { CPU_DEVICE } from '@paceline/core';
import { ServingError, toServingError } from '@paceline/protocol';
import type { Batch, BatchCompletion, LoadReport, LoadSpec, WorkerLink, WorkerListener } from '@paceline/worker-rpc';
import { modelBackend, type ModelBackend, type WorkerDevices } from './backend/load-backend.js';
import { NO_GPUS } from './gpu/gpus.js';
import { emptyFrame, FRAME, jsonBody } from './host-protocol/frames.js';
import type { HostStatistics } from './host-protocol/messages.js';
import { HostFleet } from './hosts/host-fleet.js';
import { defaultHostEntry, type HostProcess } from './hosts/host-process.js';
import { poolSizeOf, type PoolSize } from './hosts/placement.js';
import { unanswered } from './infer/completion.js';
import { LoadedModel, modelKey } from './instances/loaded-model.js';
import type { InstanceContext } from './instances/instance-context.js';
import { ModelInstance } from './instances/model-instance.js';
import { Quarantine } from './instances/quarantine.js';
import type { LocalWorkerOptions } from './local-worker.options.js';
import type { ExecuteLimits } from './supervision/execute-limit.js';
import type { InstanceMemory } from './supervision/observer.js';

/** Totals since the worker began. */
export interface WorkerStatistics {
  readonly hosts: number;
  readonly hostPids: readonly number[];
  /** Tensor bytes copied in user space between this process's buffers and ONNX Runtime, over both processes. */
  readonly copiedInBytes: number;
  readonly copiedOutBytes: number;
}

interface Loaded {
  readonly model: LoadedModel;
  readonly instances: ReadonlyMap<string, ModelInstance>;
  readonly quarantine: Quarantine;
}

const UNLOAD_LIMIT_US = 30_000_000;
const DEFAULT_DRAIN_MS = 30_000;

export class LocalWorker implements WorkerLink {
  readonly #clock: Clock;
  readonly #fleet: HostFleet;
  readonly #limits: ExecuteLimits;
  readonly #context: InstanceContext;
  readonly #devices: WorkerDevices;
  readonly #copies = { inBytes: 0, outBytes: 0 };
  readonly #loaded = new Map<string, Loaded>();
  readonly #loading = new Set<Promise<unknown>>();
  #listener: WorkerListener | undefined;
  #nextInstance = 1;
  #closed = false;

  constructor(private readonly options: LocalWorkerOptions) {
    const clock = options.clock ?? systemClock;
    this.#clock = clock;
    const { gpus = NO_GPUS, cpuInstanceCount = Math.min(2, availableParallelism()) } = options;
    this.#devices = { gpus, cpuInstanceCount };
    const limits = (this.#limits = {
      firstRunLimitUs: 1000 * (options.firstRunLimitMs ?? 120_000),
      executeLimitUs: 1000 * (options.executeLimitMs ?? 30_000),
      learnedFloorUs: 1000 * (options.learnedLimitFloorMs ?? 1000),
    });
    const pingLimitUs = 1000 * (options.pingLimitMs ?? 1400);
    const loadLimitUs = 1000 * (options.loadLimitMs ?? 300_000);
    this.#fleet = new HostFleet({
      clock,
      logger: options.logger,
      placement: { dedicatedHosts: options.dedicatedHosts ?? 4, poolHosts: options.poolHosts ?? Math.max(1, availableParallelism()) },
      hostEntry: options.hostEntry ?? defaultHostEntry(),
      shmDirectory: options.shmDirectory ?? '/dev/shm',
      api: options.runtimeApi ?? 'binding',
      copies: this.#copies,
      pingIntervalUs: 1000 * (options.pingIntervalMs ?? 300),
      pingLimitUs,
      unloadLimitUs: UNLOAD_LIMIT_US,
      memoryCheckUs: 1000 * (options.memoryCheckMs ?? 3000),
      growth: {
        settleUs: 1000 * (options.memorySettleMs ?? 30_000),
        allowedGrowthBytes: options.memoryGrowthBytes ?? 256 * 1024 * 1024,
      },
      tickUs: Math.min(100_000, Math.max(10_000, Math.min(...Object.values(limits), pingLimitUs, loadLimitUs) / 4)),
    });
    this.#context = {
      clock,
      logger: options.logger,
      fleet: this.#fleet,
      replies: options.replies,
      limits: this.#limits,
      loadLimitUs,
      pooledLoadLimitUs: 1000 * (options.pooledLoadLimitMs ?? 5000),
      beginLimitUs: pingLimitUs,
      observer: options.observer,
      tracing: options.tracing,
      slowRunUs: 1000 * (options.slowRunMs ?? 100),
      copies: this.#copies,
      onInstance: (event) => this.#listener?.onInstance(event),
      onCompletion: (completion) => this.#listener?.onCompletion(completion),
    };
  }

  setListener(listener: WorkerListener): void {
    this.#listener = listener;
  }

  load(spec: LoadSpec): Promise<LoadReport> {
    const loading = this.#load(spec);
    this.#loading.add(loading);
    const done = () => void this.#loading.delete(loading);
    loading.then(done, done);
    return loading;
  }

  async unload(model: string, version: string, generation: number): Promise<void> {
    const key = modelKey(model, version, generation);
    const loaded = this.#loaded.get(key);
    if (!loaded) return;
    this.#loaded.delete(key);
    await stop(loaded);
  }

  execute(batch: Batch): void {
    const loaded = this.#loaded.get(modelKey(batch.model, batch.version, batch.generation));
    const place = batch.quarantine ? loaded?.quarantine : loaded?.instances.get(batch.instance);
    if (place) place.execute(batch);
    else queueMicrotask(() => this.#listener?.onCompletion(unknownInstance(batch)));
  }

  /** Asks every host for its counters. */
  async statistics(): Promise<WorkerStatistics> {
    const hosts = this.#fleet.hosts();
    const counted = await Promise.all(hosts.map((host) => hostStatistics(host)));
    let copiedInBytes = this.#copies.inBytes;
    let copiedOutBytes = this.#copies.outBytes;
    for (const host of counted) {
      copiedInBytes += host?.copiedInBytes ?? 0;
      copiedOutBytes += host?.copiedOutBytes ?? 0;
    }
    return { hosts: hosts.length, hostPids: this.hostPids(), copiedInBytes, copiedOutBytes };
  }

  /** What each instance takes, as of the last look of some seconds ago. Costs no system call. */
  *instanceMemory(): Generator<InstanceMemory> {
    for (const { model, instances } of this.#loaded.values()) {
      const { model: name, version } = model.spec;
      for (const { name: instance, residentBytes } of instances.values()) {
        if (residentBytes !== undefined) yield { model: name, version, instance, residentBytes };
      }
    }
  }

  hostPids(): number[] {
    return this.#fleet.hosts().flatMap((h) => h.pid ?? []);
  }

  /** Lets batches that are here finish, at most `drainMs` (default 30 s), then ends every host. Idempotent. */
  async close(drainMs: number = DEFAULT_DRAIN_MS): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const all = [...this.#loaded.values()];
    await this.#within(drainMs, Promise.all(all.flatMap((l) => [...l.instances.values(), l.quarantine]).map((i) => i.idle())));
    this.#loaded.clear();
    const stopped = Promise.all(all.map(stop));
    await this.#fleet.close();
    await stopped;
    await Promise.allSettled(this.#loading);
  }

  async #load(spec: LoadSpec): Promise<LoadReport> {
    const begunUs = this.#clock.nowUs();
    const key = modelKey(spec.model, spec.version, spec.generation);
    if (this.#closed) throw shuttingDown();
    if (this.#loaded.has(key)) throw loadedAlready(spec);
    const backend = modelBackend(spec, this.#devices);
    const model = new LoadedModel(spec, backend, await this.#sizeOf(spec, backend), this.#limits);
    const instances = new Map(
      backend.instances.map(({ name, device }) => [name, new ModelInstance(this.#nextInstance++, name, device, model, this.#context)]),
    );
    if (this.#closed) throw shuttingDown();
    if (this.#loaded.has(key)) throw loadedAlready(spec);
    const loaded: Loaded = { model, instances, quarantine: new Quarantine(model, this.#context, () => this.#nextInstance++) };
    this.#loaded.set(key, loaded);
    const started = await Promise.allSettled([...instances.values()].map((i) => i.start()));
    const failed = started.find((s) => s.status === 'rejected');
    if (failed || this.#closed) {
      this.#loaded.delete(key);
      await stop(loaded);
      throw this.#closed || !failed ? shuttingDown() : toServingError(failed.reason);
    }
    const report = {
      instances: [...instances.keys()],
      ...(backend.instances.some(({ device }) => device !== CPU_DEVICE) && { devices: backend.instances.map(({ device }) => device) }),
      warnings: backend.warnings,
      durationMs: (this.#clock.nowUs() - begunUs) / 1000,
    };
    const samples = spec.warmup ?? [];
    if (samples.length === 0) return report;
    const runs = instances.size * samples.reduce((sum, { count }) => sum + count, 0);
    const durationMs = Math.max(...[...instances.values()].map(({ warmupMs }) => warmupMs));
    return { ...report, warmup: { samples: samples.length, runs, durationMs } };
  }

  async #sizeOf(spec: LoadSpec, backend: ModelBackend): Promise<PoolSize | undefined> {
    if (!backend.sociable) return undefined;
    const { tinyModelBytes = 1024 * 1024, smallModelBytes = 8 * 1024 * 1024 } = this.options;
    return poolSizeOf(await folderBytes(spec.modelPath), { tinyBytes: tinyModelBytes, smallBytes: smallModelBytes });
  }

  async #within(limitMs: number, done: Promise<unknown>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimer(1000 * limitMs, resolve);
      void done.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}

/** A worker ready to be handed to a scheduler. End it with `close()`. */
export function createLocalWorker(options: LocalWorkerOptions): LocalWorker {
  return new LocalWorker(options);
}

function loadedAlready(spec: LoadSpec): ServingError {
  return new ServingError(
    'ALREADY_EXISTS',
    `model '${spec.model}' version ${spec.version} generation ${spec.generation} is loaded already`,
  );
}

function shuttingDown(): ServingError {
  return new ServingError('UNAVAILABLE', 'the worker is shutting down', { reason: 'shutting_down' });
}

async function stop({ instances, quarantine }: Loaded): Promise<void> {
  await Promise.all([...instances.values(), quarantine].map((i) => i.stop()));
}

/** Size of the model with what lies beside it: weights may be in files of their own. 0 where there is nothing. */
async function folderBytes(modelPath: string): Promise<number> {
  const folder = dirname(modelPath);
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(entries.map(async (e) => (await stat(join(folder, e.name)).catch(() => undefined))?.size ?? 0));
  return sizes.reduce((a, b) => a + b, 0);
}

function hostStatistics(host: HostProcess): Promise<HostStatistics | undefined> {
  return new Promise((resolve) => {
    const sequence = host.nextSequence();
    host.send(emptyFrame(FRAME.stats, 0, sequence), sequence, {
      limitUs: UNLOAD_LIMIT_US,
      what: 'stats',
      onAnswer: (frame) => resolve(jsonBody(frame) as HostStatistics),
      onGone: () => resolve(undefined),
    });
  });
}

function unknownInstance(batch: Batch): BatchCompletion {
  const { instance, model, version } = batch;
  const error = new ServingError('UNAVAILABLE', `the worker has no instance '${instance}' of model '${model}' version ${version}`, {
    reason: 'unknown_instance',
  });
  return unanswered(batch, 'refused', false, error);
}
