/** Validation against a model: every refusal with its text, and what a good request becomes. */
import { describe, expect, test } from '@jest/globals';
import { ServingError, type InferRequest, type ServedModel, type TensorSpec } from '@paceline/protocol';
import { encodeBytes, type DataType, type Tensor } from '@paceline/tensor';
import { compileSignature, readParameters } from './index.js';

function spec(name: string, datatype: DataType, shape: readonly number[], optional = false): TensorSpec {
  return { name, datatype, shape, optional };
}

function served(
  name: string,
  maxBatchSize: number,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[] = [spec('OUTPUT0', 'FP32', [-1, 4])],
): ServedModel {
  return { name, version: '1', config: {} as ServedModel['config'], maxBatchSize, inputs, outputs, labels: new Map() };
}

function int32(name: string, shape: readonly number[], elements = shape.reduce((a, b) => a * b, 1)): Tensor {
  return { name, datatype: 'INT32', shape, data: new Uint8Array(4 * elements) };
}

function request(inputs: readonly Tensor[], more: Partial<InferRequest> = {}): InferRequest {
  return { modelName: 'm', modelVersion: '', id: '', parameters: {}, inputs, outputs: undefined, ...more };
}

const addSub = served(
  'add_sub',
  8,
  [spec('INPUT0', 'INT32', [-1, 16]), spec('INPUT1', 'INT32', [-1, 16])],
  [spec('OUTPUT0', 'INT32', [-1, 16]), spec('OUTPUT1', 'INT32', [-1, 16])],
);
const bytes = served('identity_bytes', 8, [spec('INPUT0', 'BYTES', [-1, 4])]);
const varied = served('identity_var', 8, [spec('INPUT0', 'INT32', [-1, -1])]);
const noBatch = served('nobatch', 0, [spec('INPUT0', 'INT32', [-1, 3])]);
const optional = served('optional_in', 0, [spec('INPUT0', 'INT32', [4]), spec('INPUT1', 'INT32', [4], true)]);

const NOTE =
  ' NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.';
const UNKNOWN = '[request id: <id_unknown>] ';
const blob = (...items: string[]): Tensor => ({ name: 'INPUT0', datatype: 'BYTES', shape: [1, 4], data: encodeBytes(items) });
const cut = (data: Uint8Array, by: number): Tensor => ({
  name: 'INPUT0',
  datatype: 'BYTES',
  shape: [1, 4],
  data: data.subarray(0, data.length - by),
});
const good = [int32('INPUT0', [1, 16]), int32('INPUT1', [1, 16])];

describe('refusals', () => {
  test.each<[string, ServedModel, InferRequest, string]>([
    [
      'missing',
      addSub,
      request([int32('INPUT0', [1, 16])]),
      `${UNKNOWN}expected 2 inputs but got 1 inputs for model 'add_sub'. Got input(s) ['INPUT0'], but missing required input(s) ['INPUT1']. Please provide all required input(s).`,
    ],
    [
      'none',
      addSub,
      request([]),
      `${UNKNOWN}expected 2 inputs but got 0 inputs for model 'add_sub'. Got input(s) [], but missing required input(s) ['INPUT0','INPUT1']. Please provide all required input(s).`,
    ],
    [
      'extra',
      addSub,
      request([...good, int32('INPUT2', [1, 16])]),
      `${UNKNOWN}expected 2 inputs but got 3 inputs for model 'add_sub'. Got input(s) ['INPUT2','INPUT1','INPUT0'], but missing required input(s) ]. Please provide all required input(s).`,
    ],
    [
      'duplicate',
      addSub,
      request([int32('INPUT0', [1, 16]), int32('INPUT0', [1, 16])]),
      `${UNKNOWN}input 'INPUT0' already exists in request`,
    ],
    ['unknown names', addSub, request([int32('A', [1, 16]), int32('B', [1, 16])]), "unexpected inference input 'B' for model 'add_sub'"],
    [
      'unknown output',
      addSub,
      request(good, { outputs: [{ name: 'NOPE', classification: 0 }] }),
      "unexpected inference output 'NOPE' for model 'add_sub'",
    ],
    [
      'datatype',
      addSub,
      request([{ ...int32('INPUT0', [1, 16]), datatype: 'UINT32' }, int32('INPUT1', [1, 16])]),
      `${UNKNOWN}inference input 'INPUT0' data-type is 'UINT32', but model 'add_sub' expects 'INT32'`,
    ],
    [
      'batch differs',
      addSub,
      request([int32('INPUT0', [16]), int32('INPUT1', [1, 16])]),
      `${UNKNOWN}input 'INPUT0' batch size does not match other inputs for 'add_sub'`,
    ],
    [
      'batch too big, with id',
      addSub,
      request([int32('INPUT0', [9, 16]), int32('INPUT1', [9, 16])], { id: 'r9' }),
      "[request id: r9] inference request batch-size must be <= 8 for 'add_sub'",
    ],
    [
      'no shape',
      addSub,
      request([int32('INPUT0', []), int32('INPUT1', [1, 16])]),
      `${UNKNOWN}input 'INPUT0' has no shape but model requires batch dimension for 'add_sub'`,
    ],
    [
      'rank',
      addSub,
      request([int32('INPUT0', [1, 1, 16]), int32('INPUT1', [1, 16])]),
      `${UNKNOWN}unexpected shape for input 'INPUT0' for model 'add_sub'. Expected [-1,16], got [1,1,16].${NOTE}`,
    ],
    [
      'dimension',
      addSub,
      request([int32('INPUT0', [1, 15]), int32('INPUT1', [1, 16])]),
      `${UNKNOWN}unexpected shape for input 'INPUT0' for model 'add_sub'. Expected [-1,16], got [1,15].${NOTE}`,
    ],
    [
      'negative dimension',
      varied,
      request([int32('INPUT0', [1, -2], 2)]),
      `${UNKNOWN}invalid shape for input 'INPUT0': shape [1,-2] contains one or more invalid dimensions`,
    ],
    [
      'no batching',
      noBatch,
      request([int32('INPUT0', [3])]),
      `${UNKNOWN}unexpected shape for input 'INPUT0' for model 'nobatch'. Expected [-1,3], got [3]. `,
    ],
    [
      'zero rows',
      addSub,
      request([int32('INPUT0', [0, 16]), int32('INPUT1', [0, 16])]),
      `${UNKNOWN}input byte size mismatch for input 'INPUT1' for model 'add_sub'. Expected 64, got 0`,
    ],
    [
      'zero rows of nothing',
      varied,
      request([int32('INPUT0', [0, 0])]),
      `${UNKNOWN}input 'INPUT0' has a batch of 0 rows for model 'identity_var', expected at least 1`,
    ],
    [
      'byte size',
      addSub,
      request([int32('INPUT0', [1, 16]), int32('INPUT1', [1, 16], 17)]),
      `${UNKNOWN}input byte size mismatch for input 'INPUT1' for model 'add_sub'. Expected 64, got 68`,
    ],
    [
      'product overflow',
      served('big', 0, [spec('INPUT0', 'INT32', [-1, -1])]),
      request([int32('INPUT0', [2 ** 40, 2 ** 40], 1)]),
      `${UNKNOWN}invalid shape for input 'INPUT0': shape [1099511627776,1099511627776] has too many elements`,
    ],
    [
      'few strings',
      bytes,
      request([blob('a', 'b', 'c')]),
      `${UNKNOWN}expected 4 string elements for inference input 'INPUT0' for model 'identity_bytes', got 3`,
    ],
    [
      'many strings',
      bytes,
      request([blob('a', 'b', 'c', 'd', 'e')]),
      `${UNKNOWN}unexpected number of string elements 5 for inference input 'INPUT0' for model 'identity_bytes', expecting 4`,
    ],
    [
      'cut length',
      bytes,
      request([cut(encodeBytes(['a', 'b', 'c', 'd', '']), 2)]),
      `${UNKNOWN}incomplete string length indicator for inference input 'INPUT0' for model 'identity_bytes', expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one buffer.`,
    ],
    [
      'cut string',
      bytes,
      request([cut(encodeBytes(['a', 'b', 'c', 'long']), 3)]),
      `${UNKNOWN}incomplete string data for inference input 'INPUT0' for model 'identity_bytes', expecting string of length 4 bytes but only 1 bytes available.`,
    ],
    [
      'optional: too many',
      optional,
      request([int32('INPUT0', [4]), int32('INPUT1', [4]), int32('X', [4])]),
      `${UNKNOWN}expected number of inputs between 1 and 2 but got 3 inputs for model 'optional_in'. Got input(s) ['X','INPUT1','INPUT0'], but missing required input(s) ]. Please provide all required input(s).`,
    ],
    [
      'optional: required left out',
      optional,
      request([int32('INPUT1', [4])]),
      `${UNKNOWN}expected number of inputs between 1 and 2 but got 1 inputs for model 'optional_in'. Got input(s) ['INPUT1'], but missing required input(s) ['INPUT0']. Please provide all required input(s).`,
    ],
  ])('%s', (_name, model, bad, text) => {
    const refused = expect(() => compileSignature(model).validate(bad));
    refused.toThrow(new ServingError('INVALID_ARGUMENT', text));
    refused.toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('acceptance', () => {
  test('inputs and outputs come in the order of the configuration', () => {
    const result = compileSignature(addSub).validate(
      request([int32('INPUT1', [3, 16]), int32('INPUT0', [3, 16])], {
        outputs: ['OUTPUT1', 'OUTPUT0', 'OUTPUT1'].map((name) => ({ name, classification: 0 })),
      }),
    );
    expect(result.inputs.map((i) => i.name)).toEqual(['INPUT0', 'INPUT1']);
    expect(result).toMatchObject({ rows: 3, shapeKey: '', outputs: ['OUTPUT0', 'OUTPUT1'] });
    expect(compileSignature(addSub).validate(request(good, { outputs: [{ name: 'OUTPUT1', classification: 0 }] })).outputs).toEqual([
      'OUTPUT1',
    ]);
  });

  test('shape keys are equal exactly where a batch may be shared', () => {
    const key = (model: ServedModel, inputs: Tensor[]): string => compileSignature(model).validate(request(inputs)).shapeKey;
    expect(key(varied, [int32('INPUT0', [2, 5])])).toBe(key(varied, [int32('INPUT0', [1, 5])]));
    expect(key(varied, [int32('INPUT0', [1, 4])])).not.toBe(key(varied, [int32('INPUT0', [1, 5])]));
    expect(key(optional, [int32('INPUT0', [4])])).not.toBe(key(optional, [int32('INPUT0', [4]), int32('INPUT1', [4])]));
  });

  test('a model that does not batch has one row whatever its first dimension', () => {
    expect(compileSignature(noBatch).validate(request([int32('INPUT0', [5, 3])])).rows).toBe(1);
    expect(compileSignature(noBatch).validate(request([int32('INPUT0', [0, 3])])).rows).toBe(1);
  });
});

describe('parameters', () => {
  test.each([
    [{}, 0, 0],
    [{ priority: 2n, timeout: 100n, custom: 'x' }, 2, 100],
    [{ timeout: 2n ** 64n - 1n }, 0, Number.MAX_SAFE_INTEGER],
  ])('%o', (parameters, priority, timeoutUs) => {
    expect(readParameters(parameters)).toEqual({ priority, timeoutUs });
  });

  test.each([
    [{ priority: -1n }, '-1'],
    [{ timeout: 1.5 }, '1.5'],
    [{ timeout: '5' }, '"5"'],
    [{ priority: true }, 'true'],
    [{ priority: 2n ** 64n }, '18446744073709551616'],
  ])('%o is refused', (parameters, found) => {
    expect(() => readParameters(parameters)).toThrow(`non-unsigned-integer as unsigned-integer (found ${found})`);
  });

  test('reserved keys are refused', () => {
    expect(() => readParameters({ triton_x: 1n })).toThrow("parameter keys starting with 'triton_' are reserved");
  });
});
