/** The lane's neighbours for tests: a worker whose batches end when the test says so, and a reply channel that remembers. */
import { create } from '@bufbuild/protobuf';
import type { Envelope, ReplyFrame, RequestRef, ServingError } from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import type { ReplyChannel } from '@paceline/streams';
import type { Batch, BatchCompletion, LoadReport, WorkerLink, WorkerListener } from '@paceline/worker-rpc';
import type { LaneSpec } from '../../placement/lane-host.js';

export class FakeWorker implements WorkerLink {
  readonly batches: Batch[] = [];
  #listener: WorkerListener | undefined;

  load(): Promise<LoadReport> {
    return Promise.reject(new Error('not used'));
  }

  unload(): Promise<void> {
    return Promise.reject(new Error('not used'));
  }

  execute(batch: Batch): void {
    this.batches.push(batch);
  }

  setListener(listener: WorkerListener): void {
    this.#listener = listener;
  }

  /** Request numbers of each batch, in the order sent. */
  numbers(): number[][] {
    return this.batches.map((batch) => batch.members.map((member) => member.ref.number));
  }

  /** Ends the `index`-th batch that was sent, after 1 ms of compute unless told otherwise. */
  complete(
    index: number,
    outcome: BatchCompletion['outcome'],
    more: { readonly error?: ServingError; readonly started?: boolean; readonly computeUs?: number } = {},
  ): void {
    const batch = this.batches[index];
    if (!batch) throw new Error(`no batch ${index} was sent`);
    this.#listener?.onCompletion({
      batchId: batch.id,
      instance: batch.instance,
      outcome,
      started: more.started ?? true,
      error: more.error,
      computeInputNs: 0,
      computeInferNs: (more.computeUs ?? 1000) * 1000,
      computeOutputNs: 0,
    });
  }

  instance(instance: string, state: 'ready' | 'down'): void {
    this.#listener?.onInstance({ model: 'm', version: '1', generation: 1, instance, state, reason: '' });
  }
}

export class RecordedReplies implements ReplyChannel {
  readonly frames = new Map<number, ReplyFrame>();

  send(ref: RequestRef, frame: ReplyFrame): void {
    if (this.frames.has(ref.number)) throw new Error(`request ${ref.number} was answered twice`);
    this.frames.set(ref.number, frame);
  }

  /** [number, code, message] of each error. */
  errors(): [number, string, string][] {
    const errors: [number, string, string][] = [];
    for (const [number, frame] of this.frames) if (!frame.ok) errors.push([number, frame.error.code, frame.error.message]);
    return errors;
  }
}

export function envelope(number: number, changes: Partial<Envelope> = {}): Envelope {
  return {
    ref: { gateway: 'g', number },
    model: 'm',
    version: '1',
    clientId: '',
    rows: 1,
    priority: 0,
    timeoutUs: 0,
    shapeKey: '',
    inputs: [],
    outputs: ['y'],
    ...changes,
  };
}

export interface LaneSpecOptions {
  readonly maxBatchSize: number;
  readonly model?: string;
  readonly generation?: number;
  readonly instances?: readonly string[];
  readonly delayUs?: number;
  readonly timeoutUs?: number;
  readonly maxQueueSize?: number;
  readonly preserveOrdering?: boolean;
  readonly parameters?: Readonly<Record<string, string>>;
}

/** A lane of model `m` version 1 with dynamic batching and one instance, unless told otherwise. */
export function laneSpec(options: LaneSpecOptions): LaneSpec {
  const { model = 'm', generation = 1, instances = ['g_0'], maxBatchSize } = options;
  const config = create(ModelConfigSchema, {
    name: model,
    maxBatchSize,
    parameters: Object.fromEntries(Object.entries(options.parameters ?? {}).map(([key, stringValue]) => [key, { stringValue }])),
    schedulingChoice: {
      case: 'dynamicBatching',
      value: {
        preferredBatchSize: [maxBatchSize],
        maxQueueDelayMicroseconds: BigInt(options.delayUs ?? 0),
        preserveOrdering: options.preserveOrdering ?? false,
        defaultQueuePolicy: { defaultTimeoutMicroseconds: BigInt(options.timeoutUs ?? 0), maxQueueSize: options.maxQueueSize ?? 0 },
      },
    },
  });
  return { model, version: '1', generation, config, inputs: [], instances };
}
