/** Takes a configuration text and the description of a model file through both stages. */
import { fromText } from '@bufbuild/protobuf/txtpb';
import type { ModelFileDescription, ModelFileTensor } from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import type { DataType } from '@paceline/tensor';
import type { ConfigIssue } from '../issue.js';
import { finishConfig, prepareConfig, type FinishedConfig } from '../prepare.js';

export const tensor = (name: string, shape: number[] | undefined, datatype: DataType | undefined = 'FP32', extra: Partial<ModelFileTensor> = {}): ModelFileTensor => ({
  name, datatype, elementType: 'FLOAT', shape, hasDefault: false, ...extra,
}); // prettier-ignore

export function file(inputs: ModelFileTensor[], outputs: ModelFileTensor[]): ModelFileDescription {
  return { inputs, outputs, irVersion: 8, opsets: { '': 17 }, producer: '', metadata: {}, operators: [] };
}

/** The model of most tests: FP32 [b,4] → [b,4]. */
export const batching = file([tensor('IN', [-1, 4])], [tensor('OUT', [-1, 4])]);
export const IO = 'input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ] output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]';

export function judge(
  text: string | undefined,
  description: ModelFileDescription,
  files = ['model.onnx'],
): FinishedConfig | readonly ConfigIssue[] {
  const config = text === undefined ? undefined : fromText(ModelConfigSchema, text);
  const prepared = prepareConfig({ model: 'm', config, files });
  if (prepared.issues.length > 0) return prepared.issues;
  const options = { maxBatchSizeStated: text?.includes('max_batch_size') ?? false, defaultMaxBatchSize: 4, cpuInstanceCount: 2 };
  const finished = finishConfig(prepared.config, description, options);
  return finished.ok ? finished : finished.issues;
}

export function accepted(text: string | undefined, description: ModelFileDescription): FinishedConfig {
  const result = judge(text, description);
  if (!('config' in result)) throw new Error(`refused: ${JSON.stringify(result)}`);
  return result;
}

export function refused(text: string | undefined, description: ModelFileDescription, files?: string[]): readonly ConfigIssue[] {
  const result = judge(text, description, files);
  if ('config' in result) throw new Error('accepted');
  return result;
}
