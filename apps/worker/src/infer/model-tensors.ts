/** The tensors of one loaded model, by the index that the frames use. */
import { mapShape } from '@paceline/core';
import { ServingError, type TensorSpec } from '@paceline/protocol';
import type { LoadSpec } from '@paceline/worker-rpc';

export class ModelTensors {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /** Whether the first dimension of every tensor is the batch. */
  readonly batches: boolean;
  readonly #inputIndex: ReadonlyMap<string, number>;
  readonly #outputIndex: ReadonlyMap<string, number>;

  constructor(
    spec: LoadSpec,
    readonly model: string = spec.model,
  ) {
    this.inputs = spec.inputs;
    this.outputs = spec.outputs;
    this.batches = spec.config.maxBatchSize > 0;
    this.#inputIndex = new Map(spec.inputs.map((t, i) => [t.name, i]));
    this.#outputIndex = new Map(spec.outputs.map((t, i) => [t.name, i]));
  }

  /** The shape that the model file takes for an input that clients send with `shape`: see `TensorSpec.modelShape`. */
  modelShape(input: number, shape: readonly number[]): readonly number[] {
    const spec = this.inputs[input]!;
    return spec.modelShape === undefined ? shape : mapShape(shape, spec.shape, spec.modelShape);
  }

  /** The shape that clients see for an output that the model file gives with `shape`. */
  clientShape(output: number, shape: readonly number[]): readonly number[] {
    const spec = this.outputs[output]!;
    return spec.modelShape === undefined ? shape : mapShape(shape, spec.modelShape, spec.shape);
  }

  inputIndex(name: string): number {
    return found(this.#inputIndex, name, 'input', this.model);
  }

  outputIndex(name: string): number {
    return found(this.#outputIndex, name, 'output', this.model);
  }
}

function found(indexes: ReadonlyMap<string, number>, name: string, kind: string, model: string): number {
  const index = indexes.get(name);
  if (index === undefined) {
    throw new ServingError('INVALID_ARGUMENT', `unexpected inference ${kind} '${name}' for model '${model}'`, {
      reason: `unexpected_${kind}`,
    });
  }
  return index;
}
