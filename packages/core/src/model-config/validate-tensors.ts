/** Judges the inputs and outputs of a configuration by themselves, before they are compared with the model file. */
import {
  DataType,
  ModelInput_Format as Format,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
} from '@paceline/protocol/model-config';
import { configDataTypeName, isServedDataType, wireDataType } from './datatype.js';
import type { IssueList } from './issue.js';

/** Highest rank of a tensor: more than any model has, few enough for every later loop. */
export const MAX_RANK = 64;

type Direction = 'input' | 'output';

function checkDims(dims: readonly bigint[], where: string, subject: string, model: string, issues: IssueList): void {
  if (dims.length === 0) issues.add(where, `${subject} must specify 'dims' for ${model}`, 'write dims: [ 1 ] for a single value');
  if (dims.length > MAX_RANK) issues.add(where, `${subject} has ${dims.length} dimensions for ${model}, at most ${MAX_RANK} are allowed`);
  dims.forEach((dim, i) => {
    if (dim >= 1n || dim === -1n) {
      if (dim <= BigInt(Number.MAX_SAFE_INTEGER)) return;
      issues.add(`${where}[${i}]`, `${subject} dimension ${dim} is too large for ${model}`);
      return;
    }
    issues.add(`${where}[${i}]`, `${subject} dimension must be integer >= 1, or -1 to indicate a variable-size dimension for ${model}`,
      `found ${dim}`); // prettier-ignore
  });
}

function checkTensor(direction: Direction, tensor: ModelInput | ModelOutput, index: number, model: string, issues: IssueList): void {
  const at = `${direction}[${index}]`;
  const subject = `model ${direction} '${tensor.name}'`;
  if (tensor.name === '') issues.add(at, `model ${direction} must specify 'name' for ${model}`);
  const wire = wireDataType(tensor.dataType);
  if (tensor.dataType === DataType.TYPE_INVALID) {
    issues.add(tensor.name === '' ? at : `${at}.data_type`, `${subject} must specify 'data_type' for ${model}`);
  } else if (wire === undefined || !isServedDataType(wire)) {
    issues.add(
      `${at}.data_type`,
      `unsupported datatype ${configDataTypeName(tensor.dataType)} for ${direction} '${tensor.name}' for model '${model}'`,
    );
  }
  checkDims(tensor.dims, `${at}.dims`, subject, model, issues);
}

function checkFormat(input: ModelInput, index: number, model: string, issues: IssueList): void {
  if (input.format === Format.NONE || input.dims.length === 3) return;
  const name = input.format === Format.NHWC ? 'NHWC' : 'NCHW';
  issues.add(`input[${index}].format`, `model input ${name} require 3 dims for ${model}`, `found ${input.dims.length} dims`);
}

function checkNames(direction: Direction, tensors: readonly { readonly name: string }[], model: string, issues: IssueList): void {
  const seen = new Set<string>();
  tensors.forEach(({ name }, i) => {
    if (name !== '' && seen.has(name))
      issues.add(`${direction}[${i}].name`, `model ${direction} '${name}' is specified twice for ${model}`);
    seen.add(name);
  });
}

export function checkTensors(config: ModelConfig, issues: IssueList): void {
  config.input.forEach((input, i) => {
    checkTensor('input', input, i, config.name, issues);
    checkFormat(input, i, config.name, issues);
  });
  config.output.forEach((output, i) => checkTensor('output', output, i, config.name, issues));
  checkNames('input', config.input, config.name, issues);
  checkNames('output', config.output, config.name, issues);
}
