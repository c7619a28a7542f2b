/**
 * Compares a configuration with its model file: names, counts, data types, shapes. The first lines of the messages are
 * Triton's; the hint gives the lines that would be right, because the batch dimension confuses everybody.
 */
import type { ModelFileDescription, ModelFileTensor } from '@paceline/protocol';
import type { ModelConfig, ModelInput, ModelOutput } from '@paceline/protocol/model-config';
import { configDataType, configDataTypeName, wireDataType } from './datatype.js';
import type { IssueList } from './issue.js';
import { formatShape } from './shape.js';

type Direction = 'input' | 'output';

/** `max_batch_size: 0` and `dims: [ ... ]` for a shape of the file. */
function withoutBatching(shape: readonly number[]): string {
  return `set max_batch_size: 0 and dims: [ ${(shape.length === 0 ? [1] : shape).join(', ')} ]`;
}

function shapeHint(shape: readonly number[], batching: boolean): string {
  if (!batching) return `set dims: [ ${(shape.length === 0 ? [1] : shape).join(', ')} ]`;
  const dims = shape.slice(1);
  return dims.length === 0 ? 'set dims: [ 1 ] and reshape: { shape: [ ] }' : `set dims: [ ${dims.join(', ')} ]`;
}

function matches(file: readonly number[], config: readonly number[]): boolean {
  return file.length === config.length && file.every((dim, i) => dim === -1 || dim === config[i]);
}

function checkShape(tensor: ModelInput | ModelOutput, at: string, file: ModelFileTensor, config: ModelConfig, issues: IssueList): void {
  if (file.shape === undefined) return;
  const batching = config.maxBatchSize > 0;
  const place = `model '${config.name}', tensor '${tensor.name}':`;
  if (batching && (file.shape.length === 0 || file.shape[0] !== -1)) {
    const first = file.shape.length === 0 ? 'the model takes a single value' : `the model's first dimension is fixed to ${file.shape[0]}`;
    issues.add('max_batch_size',
      `${place} for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is ${formatShape(file.shape)}`,
      `${first}: ${withoutBatching(file.shape)}`); // prettier-ignore
    return;
  }
  const dims = (tensor.reshape?.shape ?? tensor.dims).map(Number);
  const full = batching ? [-1, ...dims] : dims;
  const scalar = !batching && file.shape.length === 0 && dims.length === 1 && dims[0] === 1;
  if (scalar || matches(file.shape, full)) return;
  const found = batching
    ? `an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape ${formatShape(full)}`
    : `shape ${formatShape(full)}`;
  issues.add(tensor.reshape === undefined ? `${at}.dims` : `${at}.reshape.shape`,
    `${place} the model expects ${file.shape.length} dimensions (shape ${formatShape(file.shape)}) but the model configuration specifies ${full.length} dimensions (${found})`,
    shapeHint(file.shape, batching)); // prettier-ignore
}

function checkTensor(
  direction: Direction,
  tensor: ModelInput | ModelOutput,
  index: number,
  file: ModelFileTensor,
  config: ModelConfig,
  issues: IssueList,
): void {
  const at = `${direction}[${index}]`;
  if (file.datatype === undefined) {
    issues.add(`${at}.data_type`, `unsupported datatype ${file.elementType} for ${direction} '${tensor.name}' for model '${config.name}'`);
  } else if (wireDataType(tensor.dataType) !== file.datatype) {
    const provided = configDataTypeName(configDataType(file.datatype));
    issues.add(`${at}.data_type`,
      `unable to load model '${config.name}', configuration expects datatype ${configDataTypeName(tensor.dataType)} for ${direction} '${tensor.name}', model provides ${provided}`,
      `set data_type: ${provided}`); // prettier-ignore
  }
  checkShape(tensor, at, file, config, issues);
}

const names = (tensors: readonly { readonly name: string }[]): string => tensors.map(({ name }) => name).join(', ');

/** @param config completed, so that a missing list of inputs or outputs is no longer empty */
export function checkAgainstFile(config: ModelConfig, file: ModelFileDescription, issues: IssueList): void {
  const required = file.inputs.filter((input) => !input.hasDefault);
  const missing = required.filter(({ name }) => !config.input.some((input) => input.name === name));
  if (config.input.length !== required.length) {
    issues.add('input',
      `unable to load model '${config.name}', configuration expects ${config.input.length} inputs, model provides ${required.length}`,
      `the model's inputs are ${names(required)}; the configuration has ${config.input.length === 0 ? 'none' : names(config.input)}`); // prettier-ignore
  } else if (missing.length > 0 && config.input.every(({ name }) => file.inputs.some((input) => input.name === name))) {
    issues.add('input', `unable to load model '${config.name}', required input '${missing[0]?.name}' is not in the configuration`);
  }
  config.input.forEach((input, i) => {
    const found = file.inputs.find(({ name }) => name === input.name);
    if (found !== undefined) checkTensor('input', input, i, found, config, issues);
    else issues.add(`input[${i}].name`, `unexpected inference input '${input.name}', allowed inputs are: ${names(required)}`);
  });
  config.output.forEach((output, i) => {
    const found = file.outputs.find(({ name }) => name === output.name);
    if (found !== undefined) checkTensor('output', output, i, found, config, issues);
    else issues.add(`output[${i}].name`, `unexpected inference output '${output.name}', allowed outputs are: ${names(file.outputs)}`);
  });
}
