/**
 * Completes a configuration from its model file, by the rules of Triton's ONNX Runtime backend: nothing happens unless
 * inputs or outputs are missing; a model batches when every input and output has a variable first dimension. A
 * `max_batch_size` that the author wrote is never changed.
 */
import { create } from '@bufbuild/protobuf';
import type { ModelFileDescription, ModelFileTensor } from '@paceline/protocol';
import {
  DataType,
  ModelDynamicBatchingSchema,
  ModelInputSchema,
  ModelOutputSchema,
  ModelTensorReshapeSchema,
  type ModelConfig,
  type ModelTensorReshape,
} from '@paceline/protocol/model-config';
import { configDataType } from './datatype.js';
import type { IssueList } from './issue.js';
import { normalisePreferredBatchSizes } from './normalise.js';
import { formatShape } from './shape.js';

export interface CompletionOptions {
  /** Whether the author wrote `max_batch_size`, be it 0. */
  readonly maxBatchSizeStated: boolean;
  /** Batch size given to a model that can batch and states none; Triton's `default-max-batch-size`, 4. 0 or 1: no batcher. */
  readonly defaultMaxBatchSize: number;
}

const canBatch = ({ shape }: ModelFileTensor): boolean => shape !== undefined && shape.length > 0 && shape[0] === -1;

function checkCompletable(direction: 'input' | 'output', tensor: ModelFileTensor, model: string, issues: IssueList): void {
  if (tensor.datatype === undefined || tensor.datatype === 'BF16') {
    issues.add('', `unsupported datatype ${tensor.elementType} for ${direction} '${tensor.name}' for model '${model}'`);
  } else if (tensor.shape === undefined) {
    issues.add('', `${direction} '${tensor.name}' of model '${model}' has no shape in the model file, so that 'dims' must be written`);
  }
}

/** @param config changed in place: input, output, max_batch_size, dynamic_batching */
export function completeFromFile(config: ModelConfig, file: ModelFileDescription, options: CompletionOptions, issues: IssueList): void {
  const wantsInputs = config.input.length === 0;
  const wantsOutputs = config.output.length === 0;
  if (!wantsInputs && !wantsOutputs) return;
  const inputs = file.inputs.filter((input) => !input.hasDefault);
  completeBatching(config, [...inputs, ...file.outputs], options, issues);
  const batching = config.maxBatchSize > 0;
  if (wantsInputs) {
    for (const tensor of inputs) {
      checkCompletable('input', tensor, config.name, issues);
      config.input.push(create(ModelInputSchema, tensorFields(tensor, batching)));
    }
  }
  if (wantsOutputs) {
    for (const tensor of file.outputs) {
      checkCompletable('output', tensor, config.name, issues);
      config.output.push(create(ModelOutputSchema, tensorFields(tensor, batching)));
    }
  }
}

function completeBatching(config: ModelConfig, tensors: readonly ModelFileTensor[], options: CompletionOptions, issues: IssueList): void {
  const fixed = tensors.find((tensor) => !canBatch(tensor));
  if (fixed !== undefined) {
    if (config.maxBatchSize > 0) {
      issues.add('max_batch_size', `autofill failed for model '${config.name}': model does not support batching while non-zero max_batch_size is specified`,
        `the first dimension of '${fixed.name}' ${formatShape(fixed.shape)} is not variable: set max_batch_size: 0`); // prettier-ignore
    }
    return;
  }
  if (config.maxBatchSize === 0 && !options.maxBatchSizeStated) config.maxBatchSize = options.defaultMaxBatchSize;
  if (config.maxBatchSize > 1 && config.schedulingChoice.case === undefined) {
    config.schedulingChoice = { case: 'dynamicBatching', value: create(ModelDynamicBatchingSchema) };
  }
  normalisePreferredBatchSizes(config);
}

/**
 * A configuration cannot have empty dims: a single value is written as shape [1], and one value a row of a batch gets
 * an empty reshape beside it.
 */
function tensorFields(tensor: ModelFileTensor, batching: boolean): TensorFields {
  const shape = tensor.shape ?? [];
  const dims = batching ? shape.slice(1) : shape;
  return {
    name: tensor.name,
    dataType: tensor.datatype === undefined ? DataType.TYPE_INVALID : configDataType(tensor.datatype),
    dims: (dims.length === 0 ? [1] : dims).map(BigInt),
    ...(batching && dims.length === 0 ? { reshape: create(ModelTensorReshapeSchema) } : {}),
  };
}

interface TensorFields {
  name: string;
  dataType: DataType;
  dims: bigint[];
  reshape?: ModelTensorReshape;
}
