/** For tests: one model in a catalog, and a queue whose lane answers when the test says so. */
import { create } from '@bufbuild/protobuf';
import {
  ServingError,
  type Envelope,
  type ModelCatalog,
  type ReplyFrame,
  type RequestRef,
  type ServedModel,
  type TensorSpec,
} from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import type { RequestQueue } from '@paceline/streams';
import type { DataType, Tensor } from '@paceline/tensor';

export interface FakeModel {
  readonly name: string;
  readonly maxBatchSize?: number;
  readonly inputs: readonly [name: string, datatype: DataType, shape: readonly number[]][];
  readonly outputs?: readonly [name: string, datatype: DataType, shape: readonly number[]][];
  readonly labels?: readonly string[];
  readonly preserveOrdering?: boolean;
  readonly decoupled?: boolean;
}

/** Shapes as on the wire; outputs default to the inputs renamed OUTPUT0, OUTPUT1 … */
export function fakeModel(model: FakeModel): ServedModel {
  const specs = (list: FakeModel['inputs']): TensorSpec[] =>
    list.map(([name, datatype, shape]) => ({ name, datatype, shape, optional: false }));
  const outputs = specs(model.outputs ?? model.inputs.map(([, datatype, shape], i) => [`OUTPUT${i}`, datatype, shape]));
  const config = create(ModelConfigSchema, {
    name: model.name,
    maxBatchSize: model.maxBatchSize ?? 8,
    ...(model.preserveOrdering && { schedulingChoice: { case: 'dynamicBatching', value: { preserveOrdering: true } } }),
    ...(model.decoupled && { modelTransactionPolicy: { decoupled: true } }),
  });
  return {
    name: model.name,
    version: '1',
    config,
    maxBatchSize: model.maxBatchSize ?? 8,
    inputs: specs(model.inputs),
    outputs,
    labels: new Map(model.labels ? outputs.map((o) => [o.name, model.labels as readonly string[]]) : []),
  };
}

export function catalogOf(...models: readonly ServedModel[]): ModelCatalog {
  const find = (name: string): ServedModel | undefined => models.find((m) => m.name === name);
  return {
    resolve(name, version) {
      const model = find(name);
      if (!model) throw new ServingError('NOT_FOUND', `Request for unknown model: '${name}' is not found`);
      if (version !== '' && version !== model.version)
        throw new ServingError('NOT_FOUND', `Request for unknown model: '${name}' version ${version} is not found`);
      return model;
    },
    readyVersions: (name) => (find(name) ? ['1'] : []),
    isHealthy: () => true,
    served: () => models,
    allReady: () => true,
  };
}

export const NO_TIMINGS = { queueNs: 0, computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0, batchRows: 1 };

export function okFrame(outputs: readonly Tensor[], index = 0, final = true): ReplyFrame {
  return { ok: true, index, final, outputs, timings: NO_TIMINGS };
}

/** Outputs are the inputs in order, under the names of the outputs asked for. */
export function echo(envelope: Envelope): readonly Tensor[] {
  return envelope.outputs.map((name, i) => ({ ...(envelope.inputs[Math.min(i, envelope.inputs.length - 1)] as Tensor), name }));
}

/** Keeps what was enqueued and cancelled; `answer` decides what happens at once, if anything. */
export class FakeQueue implements RequestQueue {
  readonly enqueued: Envelope[] = [];
  readonly cancelled: RequestRef[] = [];
  readonly forgotten: RequestRef[] = [];
  answer: ((envelope: Envelope) => void) | undefined;

  enqueue(envelope: Envelope): void {
    this.enqueued.push(envelope);
    this.answer?.(envelope);
  }

  cancel(ref: RequestRef): void {
    this.cancelled.push(ref);
  }

  forget(ref: RequestRef): void {
    this.forgotten.push(ref);
  }
}
