/** Turns a final configuration into the tensors that clients see. */
import type { ModelFileDescription, ModelFileTensor, TensorSpec } from '@paceline/protocol';
import type { ModelConfig, ModelInput, ModelOutput } from '@paceline/protocol/model-config';
import { wireDataType } from './datatype.js';

function describeTensor(
  tensor: ModelInput | ModelOutput,
  optional: boolean,
  batching: boolean,
  file: ModelFileTensor | undefined,
): TensorSpec {
  const lead = batching ? [-1] : [];
  const shape = [...lead, ...tensor.dims.map(Number)];
  const spec = { name: tensor.name, datatype: wireDataType(tensor.dataType) ?? 'FP32', shape, optional };
  if (tensor.reshape !== undefined) return { ...spec, modelShape: [...lead, ...tensor.reshape.shape.map(Number)] };
  // A value of rank 0 cannot be configured as such: clients see it as shape [1].
  if (!batching && file?.shape?.length === 0) return { ...spec, modelShape: [] };
  return spec;
}

/**
 * Inputs and outputs in the order of the configuration, with the leading -1 where the model batches.
 * @param config normalised, completed and free of issues
 * @param file undefined where the model has none
 */
export function describeTensors(
  config: ModelConfig,
  file: ModelFileDescription | undefined,
): { inputs: TensorSpec[]; outputs: TensorSpec[] } {
  const batching = config.maxBatchSize > 0;
  const find = (tensors: readonly ModelFileTensor[] | undefined, name: string): ModelFileTensor | undefined =>
    tensors?.find((t) => t.name === name);
  return {
    inputs: config.input.map((input) => describeTensor(input, input.optional, batching, find(file?.inputs, input.name))),
    outputs: config.output.map((output) => describeTensor(output, false, batching, find(file?.outputs, output.name))),
  };
}
