/**
 * A worker without hosts, for tests of schedulers and of adapters: loads succeed at once (or as the test says), batches
 * wait until the test ends them, epochs are fenced as a real worker does.
 */
import { isCurrentEpoch, ServingError, type Device, type Epoch } from '@paceline/protocol';
import type { Claimed, FencedBatch, ModelAnnouncement, WorkerHello } from '../cluster-worker.js';
import { STALE_EPOCH, type SchedulerSession, type ServedWorker } from '../served-worker.js';
import type { BatchCompletion, LoadReport, LoadSpec } from '../worker-link.js';

interface Waiting {
  readonly session: SchedulerSession;
  readonly fenced: FencedBatch;
}

const keyOf = (model: string, version: string, generation: number): string => `${model}/${version}/${generation}`;

export class FakeWorker implements ServedWorker {
  readonly sessions = new Set<SchedulerSession>();
  readonly models = new Map<string, ModelAnnouncement>();
  readonly epochs = new Map<number, Epoch>();
  /** Batches that have not ended, oldest first. */
  readonly waiting: Waiting[] = [];
  /** Every batch that was accepted. */
  readonly batches: FencedBatch[] = [];
  /** What `load` does, if anything else than succeeding at once. */
  onLoad: ((spec: LoadSpec) => Promise<LoadReport>) | undefined;
  /** Called with each accepted batch, e.g. to end it at once. */
  onBatch: ((fenced: FencedBatch) => void) | undefined;
  /** Loads that were asked for, in order. */
  readonly loads: LoadSpec[] = [];
  readonly #stopped = new Map<string, () => void>();
  draining = false;

  constructor(
    readonly worker: string,
    readonly devices: readonly Device[] = [{ id: 'cpu', kind: 'cpu', memoryBytes: 8 * 2 ** 30 }],
  ) {}

  connect(session: SchedulerSession): WorkerHello {
    this.sessions.add(session);
    return {
      worker: this.worker,
      devices: this.devices,
      models: [...this.models.values()],
      draining: this.draining,
      epochs: [...this.epochs].map(([partition, epoch]) => ({ partition, epoch })),
    };
  }

  disconnect(session: SchedulerSession): void {
    this.sessions.delete(session);
  }

  async load(_session: SchedulerSession, spec: LoadSpec, fingerprint: string): Promise<LoadReport> {
    this.loads.push(spec);
    const instances = spec.config.instanceGroup.flatMap((group, g) =>
      Array.from({ length: Math.max(1, group.count) }, (_, n) => `${group.name || `${spec.model}_${g}`}_${n}`),
    );
    const names = instances.length > 0 ? instances : [`${spec.model}_0`];
    const report = this.onLoad ? await this.onLoad(spec) : { instances: names, warnings: [], durationMs: 1 };
    const { warmup: _, ...announced } = spec;
    const devices = report.devices && { devices: report.devices };
    this.#announce({ spec: announced, fingerprint, instances: names, ...devices, ready: names, state: 'loaded', memoryBytes: 0 });
    return report;
  }

  activate(model: string, version: string, generation: number): void {
    const loaded = this.models.get(keyOf(model, version, generation));
    if (!loaded) throw new ServingError('NOT_FOUND', `model '${model}' version ${version} is not loaded`, { reason: 'unknown_load' });
    this.#announce({ ...loaded, state: 'active' });
  }

  retire(model: string, version: string, generation: number): Promise<void> {
    const key = keyOf(model, version, generation);
    const loaded = this.models.get(key);
    if (!loaded) return Promise.resolve();
    const stopped = new Promise<void>((resolve) => this.#stopped.set(key, resolve));
    if (loaded.state === 'loaded') this.release(model, version, generation);
    else this.#announce({ ...loaded, state: 'retiring' });
    return stopped;
  }

  release(model: string, version: string, generation: number): void {
    const key = keyOf(model, version, generation);
    if (!this.models.delete(key)) return;
    for (const session of this.sessions) session.onModelGone(model, version, generation);
    this.#stopped.get(key)?.();
    this.#stopped.delete(key);
  }

  claim(partition: number, epoch: Epoch): Claimed {
    const known = this.epochs.get(partition);
    if (known && !isCurrentEpoch(epoch, known)) return { ok: false, highest: known };
    this.epochs.set(partition, epoch);
    const running = this.waiting.filter((w) => w.fenced.partition === partition);
    const members = running.flatMap((w) => w.fenced.batch.members);
    return { ok: true, running: members.map(({ ref, attempt = 1 }) => ({ ref, attempt })) };
  }

  execute(session: SchedulerSession, fenced: FencedBatch): void {
    const { partition, epoch, batch } = fenced;
    if (!isCurrentEpoch(epoch, this.epochs.get(partition))) {
      const error = new ServingError('ABORTED', `partition ${partition} has another owner`, { reason: STALE_EPOCH });
      session.onCompletion(completionOf(fenced, 'refused', error));
      return;
    }
    this.epochs.set(partition, epoch);
    if (!this.models.has(keyOf(batch.model, batch.version, batch.generation))) {
      const error = new ServingError('UNAVAILABLE', `no instance '${batch.instance}'`, { reason: 'unknown_instance' });
      session.onCompletion(completionOf(fenced, 'refused', error));
      return;
    }
    this.batches.push(fenced);
    this.waiting.push({ session, fenced });
    this.onBatch?.(fenced);
  }

  /** The oldest batch that has not ended begins. */
  start(): void {
    const { session, fenced } = this.#oldest();
    session.onStarted(fenced.batch.id);
  }

  /** Ends the oldest batch. @returns the batch; whether its members were answered is the test's business */
  end(outcome: BatchCompletion['outcome'] = 'ok', error?: ServingError): FencedBatch {
    const { session, fenced } = this.#oldest();
    this.waiting.shift();
    session.onCompletion(completionOf(fenced, outcome, error));
    return fenced;
  }

  /** An instance of a load fell or came back. */
  instance(model: string, version: string, generation: number, instance: string, state: 'ready' | 'down'): void {
    const loaded = this.models.get(keyOf(model, version, generation));
    if (!loaded) throw new Error(`no load ${keyOf(model, version, generation)}`);
    const ready = state === 'ready' ? [...loaded.ready, instance] : loaded.ready.filter((name) => name !== instance);
    this.models.set(keyOf(model, version, generation), { ...loaded, ready });
    for (const session of this.sessions) session.onInstance({ model, version, generation, instance, state, reason: 'test' });
  }

  drain(): void {
    this.draining = true;
    for (const session of this.sessions) session.onDraining();
  }

  #oldest(): Waiting {
    const [oldest] = this.waiting;
    if (!oldest) throw new Error('no batch is with the worker');
    return oldest;
  }

  #announce(model: ModelAnnouncement): void {
    this.models.set(keyOf(model.spec.model, model.spec.version, model.spec.generation), model);
    for (const session of this.sessions) session.onModel(model);
  }
}

function completionOf(fenced: FencedBatch, outcome: BatchCompletion['outcome'], error: ServingError | undefined): BatchCompletion {
  const { id, instance } = fenced.batch;
  const ns = outcome === 'ok' ? 1000 : 0;
  const times = { computeInputNs: ns, computeInferNs: ns, computeOutputNs: ns };
  return { batchId: id, instance, outcome, started: outcome !== 'refused', error, ...times };
}
