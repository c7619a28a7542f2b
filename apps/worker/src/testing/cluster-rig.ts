/** A cluster worker over a fake local worker and fake links, joined with schedulers in memory, on a clock that is moved. */
import { FakeClock } from '@paceline/clock/testing';
import type { ReplyFrame, RequestRef, ServingError } from '@paceline/protocol';
import type { WorkerLinks } from '@paceline/streams';
import type { Tensor } from '@paceline/tensor';
import type { Batch, BatchCompletion, LoadReport, LoadSpec, RemoteWorker, WorkerLink, WorkerListener } from '@paceline/worker-rpc';
import { InMemoryWorkers, RemoteRecorder } from '@paceline/worker-rpc/testing';
import { ClusterWorker } from '../cluster/cluster-worker.js';
import type { InstanceMemory } from '../supervision/observer.js';
import { configOf } from './samples.js';

export const WORKER = '00000000000000f1';

/** Batches run until the test ends them. */
export class FakeLocalWorker implements WorkerLink {
  readonly executed: Batch[] = [];
  readonly unloaded: string[] = [];
  readonly loaded: LoadSpec[] = [];
  readonly memory: InstanceMemory[] = [];
  onLoad: (spec: LoadSpec) => Promise<LoadReport> = (spec) =>
    Promise.resolve({ instances: [`${spec.model}_0_0`], warnings: [], durationMs: 1 });
  listener: WorkerListener | undefined;

  setListener(listener: WorkerListener): void {
    this.listener = listener;
  }

  load(spec: LoadSpec): Promise<LoadReport> {
    this.loaded.push(spec);
    return this.onLoad(spec);
  }

  async unload(model: string, version: string, generation: number): Promise<void> {
    this.unloaded.push(`${model}/${version}/${generation}`);
  }

  execute(batch: Batch): void {
    this.executed.push(batch);
  }

  instanceMemory(): Iterable<InstanceMemory> {
    return this.memory;
  }

  /** Ends the oldest batch that runs. */
  end(outcome: BatchCompletion['outcome'] = 'ok', started = true, error?: ServingError): Batch {
    const batch = this.executed.shift();
    if (!batch) throw new Error('nothing runs');
    const times = { computeInputNs: 1, computeInferNs: 2, computeOutputNs: 3 };
    this.listener?.onCompletion({ batchId: batch.id, instance: batch.instance, outcome, started, error, ...times });
    return batch;
  }
}

export class FakeLinks implements WorkerLinks {
  readonly gateways: readonly string[] = [];
  readonly frames: { readonly ref: RequestRef; readonly frame: ReplyFrame }[] = [];
  readonly handedBack: { readonly number: number; readonly attempt: number; readonly started: boolean; readonly message: string }[] = [];
  readonly pulls = new Map<number, PromiseWithResolvers<readonly Tensor[]>>();

  setMembers(): void {}

  send(ref: RequestRef, frame: ReplyFrame): void {
    this.frames.push({ ref, frame });
  }

  lost({ number }: RequestRef, attempt: number, started: boolean, { message }: ServingError): void {
    this.handedBack.push({ number, attempt, started, message });
  }

  pull({ number }: RequestRef): Promise<readonly Tensor[]> {
    const pull = Promise.withResolvers<readonly Tensor[]>();
    this.pulls.set(number, pull);
    return pull.promise;
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export class ClusterRig {
  readonly clock = new FakeClock();
  readonly local = new FakeLocalWorker();
  readonly links = new FakeLinks();
  readonly network = new InMemoryWorkers();
  readonly cluster = new ClusterWorker({
    id: WORKER,
    devices: [{ id: 'cpu', kind: 'cpu', memoryBytes: 1e9 }],
    worker: this.local,
    links: this.links,
    clock: this.clock,
  });

  constructor() {
    this.network.up(WORKER, this.cluster);
  }

  async join(scheduler: string): Promise<{ remote: RemoteWorker; told: RemoteRecorder }> {
    const told = new RemoteRecorder();
    const remote = this.network.connectFrom(scheduler)(WORKER, '', told);
    await told.next('up');
    return { remote, told };
  }
}

export function specOf(model: string, generation = 1): LoadSpec {
  return { model, version: '1', generation, config: configOf(model), modelPath: '/m', inputs: [], outputs: [] };
}

/** Lets everything that is under way in memory arrive. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}
