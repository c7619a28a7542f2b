/** The worker's side of the gRPC stream without any instances: loads succeed, and every batch ends well at once. */
import type { Epoch } from '@paceline/protocol';
import type {
  Claimed,
  FencedBatch,
  LoadReport,
  LoadSpec,
  ModelAnnouncement,
  SchedulerSession,
  ServedWorker,
  WorkerHello,
} from '@paceline/worker-rpc';

const MEMORY_BYTES = 8 * 2 ** 30;
/** Pretended times of each stage of a batch. */
const STAGE_NS = 1000;

export class ServedSink implements ServedWorker {
  private readonly sessions = new Set<SchedulerSession>();
  private readonly models = new Map<string, ModelAnnouncement>();
  private readonly epochs = new Map<number, Epoch>();

  /** @param onBatch called with how many requests have ended */
  constructor(
    private readonly worker: string,
    private readonly onBatch: (requests: number) => void,
  ) {}

  /** The partition of a model that is active. */
  partitionOf(model: string): number | undefined {
    return [...this.models.values()].find(({ spec, state }) => spec.model === model && state === 'active')?.spec.partition;
  }

  connect(session: SchedulerSession): WorkerHello {
    this.sessions.add(session);
    const epochs = [...this.epochs].map(([partition, epoch]) => ({ partition, epoch }));
    const devices = [{ id: 'cpu', kind: 'cpu', memoryBytes: MEMORY_BYTES } as const];
    return { worker: this.worker, devices, models: [...this.models.values()], draining: false, epochs };
  }

  disconnect(session: SchedulerSession): void {
    this.sessions.delete(session);
  }

  load(_session: SchedulerSession, { warmup: _, ...spec }: LoadSpec, fingerprint: string): Promise<LoadReport> {
    const instances = [`${spec.model}_0`];
    this.announce({ spec, fingerprint, instances, ready: instances, state: 'loaded', memoryBytes: 0 });
    return Promise.resolve({ instances, warnings: [], durationMs: 1 });
  }

  activate(model: string): void {
    const loaded = this.models.get(model);
    if (loaded !== undefined) this.announce({ ...loaded, state: 'active' });
  }

  retire(): Promise<void> {
    return Promise.reject(new Error('a model of a measurement is not retired'));
  }

  release(): void {
    throw new Error('a model of a measurement is not retired');
  }

  claim(partition: number, epoch: Epoch): Claimed {
    this.epochs.set(partition, epoch);
    return { ok: true, running: [] };
  }

  execute(session: SchedulerSession, { batch: { id, instance, members } }: FencedBatch): void {
    const stages = { computeInputNs: STAGE_NS, computeInferNs: STAGE_NS, computeOutputNs: STAGE_NS };
    session.onStarted(id);
    session.onCompletion({ batchId: id, instance, outcome: 'ok', started: true, error: undefined, ...stages });
    this.onBatch(members.length);
  }

  private announce(model: ModelAnnouncement): void {
    this.models.set(model.spec.model, model);
    for (const session of this.sessions) session.onModel(model);
  }
}
