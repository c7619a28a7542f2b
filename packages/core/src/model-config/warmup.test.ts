// Warmup samples: what is refused and where, and what the tensors of an accepted sample hold.
import { describe, expect, test } from '@jest/globals';
import { DATA_TYPES, elementSize, encodeBytes } from '@paceline/tensor';
import { accepted, batching, file, IO, refused, tensor } from './testing/judge.js';
import { warmupTensor } from './warmup-data.js';

const sample = (inner: string, rest = 'batch_size: 1'): string =>
  `max_batch_size: 8 ${IO} model_warmup [ { name: "w" ${rest} inputs { key: "IN" value: { ${inner} } } } ]`;
const GOOD = 'data_type: TYPE_FP32 dims: [ 4 ] zero_data: true';

describe('plans', () => {
  test('state rows, runs and content', () => {
    const text = `max_batch_size: 8 ${IO} model_warmup [
      { name: "a" batch_size: 3 count: 5 inputs { key: "IN" value: { ${GOOD} } } },
      { name: "skipped" inputs { key: "nosuch" value: { } } },
      { name: "b" batch_size: 1 inputs { key: "IN" value: { data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "x" } } } ]`;
    expect(accepted(text, batching).warmup).toEqual([
      { name: 'a', rows: 3, count: 5, inputs: [{ name: 'IN', datatype: 'FP32', rowShape: [4], content: { kind: 'zero' } }] },
      { name: 'b', rows: 1, count: 1, inputs: [{ name: 'IN', datatype: 'FP32', rowShape: [4], content: { kind: 'file', path: 'x' } }] },
    ]);
  });

  test('a model that does not batch gets tensors without a batch dimension, and variable dimensions get a number', () => {
    const fixed = file([tensor('IN', [-1, 4])], [tensor('OUT', [-1, 4])]);
    const io = IO.replaceAll('dims: [ 4 ]', 'dims: [ -1, 4 ]');
    const text = `max_batch_size: 0 ${io} model_warmup { name: "w" batch_size: 1 inputs { key: "IN" value: { data_type: TYPE_FP32 dims: [ 7, 4 ] random_data: true } } }`;
    const [plan] = accepted(text, fixed).warmup;
    expect(plan).toMatchObject({ rows: 0, inputs: [{ rowShape: [7, 4] }] });
  });

  test.each([
    [sample(GOOD, 'batch_size: 9'), 'model_warmup[0].batch_size', 'batch_size must be at most max_batch_size 8, found 9'],
    [sample(GOOD, 'batch_size: 1 count: 10001'), 'model_warmup[0].count', 'count must be at most 10000, found 10001'],
    [
      sample(GOOD.replace('FP32', 'INT8')),
      'model_warmup[0].inputs["IN"].data_type',
      "input 'IN' has data type TYPE_INT8, the model takes TYPE_FP32",
    ],
    [sample(GOOD.replace('[ 4 ]', '[ 1, 4 ]')), 'model_warmup[0].inputs["IN"].dims', "input 'IN' has dims [1,4], expected [4]"],
    [sample(GOOD.replace('zero_data: true', '')), 'model_warmup[0].inputs["IN"]', "input 'IN' must say what it holds"],
  ])('%s', (text, path, message) => {
    expect(refused(text, batching)).toMatchObject([{ path, message: `warmup sample 'w' of model 'm': ${message}` }]);
  });

  test('a wrong input name is named together with the right ones', () => {
    const text = `max_batch_size: 8 ${IO} model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT" value: { ${GOOD} } } }`;
    expect(refused(text, batching)).toEqual([
      {
        path: 'model_warmup[0].inputs["INPUT"]',
        message: "warmup sample 'w' of model 'm': unexpected input 'INPUT'",
        hint: "the model's inputs are: IN",
      },
      {
        path: 'model_warmup[0]',
        message: "warmup sample 'w' of model 'm': input 'IN' is missing",
        hint: 'add inputs { key: "IN" value: { ... } }',
      },
    ]);
  });

  test('a sample that would fill the memory is refused before anything is made', () => {
    const wide = file([tensor('IN', [-1, -1])], [tensor('OUT', [-1, 4])]);
    const text = sample('data_type: TYPE_FP32 dims: [ 1000000000 ] zero_data: true').replace('dims: [ 4 ]', 'dims: [ -1 ]');
    expect(refused(text, wide)[0]?.message).toContain('its tensors have 4000000000 bytes, at most 536870912 are allowed');
  });
});

describe('tensors', () => {
  const plan = { name: 'x', rowShape: [3, 7], content: { kind: 'random' } } as const;

  test.each(DATA_TYPES)('random %s is the same every time, of the right size and in range', (datatype) => {
    const made = warmupTensor({ ...plan, datatype }, 2, undefined);
    expect(made.shape).toEqual([2, 3, 7]);
    expect(made.data.byteLength).toBe(42 * (elementSize(datatype) || 4));
    expect(warmupTensor({ ...plan, datatype }, 2, undefined)).toEqual(made);
    const distinct = new Set(made.data).size;
    if (datatype === 'BYTES') expect(distinct).toBe(1);
    else if (datatype.startsWith('FP') || datatype === 'BF16') expect(distinct).toBeGreaterThan(20);
    else expect([...new Set(made.data)].sort()).toEqual([0, 1]);
    if (datatype === 'FP32') {
      const values = new Float32Array(made.data.buffer);
      expect(values.every((value) => value >= 0 && value < 1)).toBe(true);
    }
  });

  test('random data repeats after a while and fills everything', () => {
    const { data } = warmupTensor({ ...plan, datatype: 'FP32', rowShape: [50_001] }, 0, undefined);
    const values = new Float32Array(data.buffer);
    expect(values.slice(16_384, 16_400)).toEqual(values.slice(0, 16));
    expect(values.at(-1)).toBe(values[50_000 % 16_384]);
  });

  test('a file is one row, repeated', () => {
    const row = Uint8Array.of(1, 2);
    const made = warmupTensor({ name: 'x', datatype: 'UINT8', rowShape: [2], content: { kind: 'file', path: 'f' } }, 3, row);
    expect(made).toEqual({ name: 'x', datatype: 'UINT8', shape: [3, 2], data: Uint8Array.of(1, 2, 1, 2, 1, 2) });
  });

  test.each([
    ['FP32', Uint8Array.of(1), 'expected 8 bytes, found 1'],
    ['BYTES', encodeBytes(['a']), 'expected 2 elements, each a 4-byte length and that many bytes, found 1'],
    [
      'BYTES',
      encodeBytes(['a', 'bc']).subarray(0, 10),
      'expected 2 elements, each a 4-byte length and that many bytes, found 2, the last of them cut off',
    ],
  ] as const)('a file of the wrong size for %s is refused', (datatype, row, message) => {
    const content = { kind: 'file', path: 'f' } as const;
    expect(() => warmupTensor({ name: 'x', datatype, rowShape: [2], content }, 1, row)).toThrow(message);
  });
});
