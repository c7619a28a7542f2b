// Broken configuration files: every fault with line, column, field, expectation, finding and hint; right ones can be asked for places.
import { describe, expect, test } from '@jest/globals';
import { ServingError } from '@paceline/protocol';
import { parseConfigText } from './parse.js';

function faults(text: string): string[] {
  try {
    parseConfigText(text, 'm/config.pbtxt');
  } catch (error) {
    expect(error).toBeInstanceOf(ServingError);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'config_syntax' });
    return (error as Error).message.split('\n');
  }
  throw new Error('the text was accepted');
}

describe('one fault', () => {
  test.each([
    ['unknown field', 'name: "x"\nmax_batch_sizes: 8\n', "m/config.pbtxt:2:1: expected a field of ModelConfig, found 'max_batch_sizes' (did you mean max_batch_size?)"],
    ['unknown field far from any', 'zzzzzzzzzz: 8', "m/config.pbtxt:1:1: expected a field of ModelConfig, found 'zzzzzzzzzz'"],
    ['unknown nested field', 'dynamic_batching {\n  prefered_batch_size: [ 4 ]\n}', "m/config.pbtxt:2:3: dynamic_batching: expected a field of ModelDynamicBatching, found 'prefered_batch_size' (did you mean preferred_batch_size?)"],
    ['word for a number', '\n\nmax_batch_size: eight', "m/config.pbtxt:3:17: max_batch_size: expected an integer, found 'eight'"],
    ['string for a number', 'max_batch_size: "8"', `m/config.pbtxt:1:17: max_batch_size: expected an integer, found '"8"' (write it without quotes)`],
    ['fraction for an integer', 'max_batch_size: 1.5', "m/config.pbtxt:1:17: max_batch_size: expected an integer, found '1.5'"],
    ['out of range', 'max_batch_size: 99999999999', "m/config.pbtxt:1:17: max_batch_size: expected an integer in -2147483648..2147483647, found '99999999999'"],
    ['negative for unsigned', 'dynamic_batching { max_queue_delay_microseconds: -1 }', "m/config.pbtxt:1:50: dynamic_batching.max_queue_delay_microseconds: expected a non-negative integer in 0..18446744073709551615, found '-1'"],
    ['unfilled template', 'name: "x"\nmax_batch_size: ${batch}\n', "m/config.pbtxt:2:17: max_batch_size: expected an integer, found '${batch}' (${batch} is a place-holder that was never filled in)"],
    ['unfilled template of the other form', 'max_batch_size: $BATCH', "m/config.pbtxt:1:17: max_batch_size: expected an integer, found '$BATCH' ($BATCH is a place-holder that was never filled in)"],
    ['word for a string', 'backend: onnxruntime', `m/config.pbtxt:1:10: backend: expected a string in quotes, found 'onnxruntime' (write "onnxruntime")`],
    ['unterminated string', 'name: "x\nbackend: "y"', `m/config.pbtxt:1:7: name: expected a string in quotes, found '"x' (the string has no closing quote on its line)`],
    ['enum typo', 'input [\n  { name: "a", data_type: TYPE_FP33, dims: [ 4 ] }\n]', /^m\/config.pbtxt:2:27: input\[0\].data_type: expected one of TYPE_BOOL, .*, found 'TYPE_FP33' \(did you mean TYPE_FP32\?\)$/],
    ['enum in quotes', 'input { data_type: "TYPE_FP32" }', /^m\/config.pbtxt:1:20: input\[0\].data_type: expected one of .*found '"TYPE_FP32"' \(write it without quotes: TYPE_FP32\)$/],
    ['element of a list', 'input { dims: [ 1, x, 3 ] }', "m/config.pbtxt:1:20: input[0].dims[1]: expected an integer, found 'x'"],
    ['bool', 'dynamic_batching { preserve_ordering: yes }', "m/config.pbtxt:1:39: dynamic_batching.preserve_ordering: expected true or false, found 'yes'"],
    ['set twice', 'max_batch_size: 1\nmax_batch_size: 2', "m/config.pbtxt:2:1: max_batch_size: expected max_batch_size once, found 'max_batch_size' (it is set a second time here)"],
    ['oneof twice', 'sequence_batching { }\ndynamic_batching { }', "m/config.pbtxt:2:1: dynamic_batching: expected one of sequence_batching and dynamic_batching, found 'dynamic_batching' (they exclude each other)"],
    ['brace never closed', 'input {\n  name: "a"\n', "m/config.pbtxt:3:1: input[0]: expected '}', found end of file (a brace that was opened is never closed)"],
    ['brace too many', 'name: "a"\n}', "m/config.pbtxt:2:1: expected a field name, found '}'"],
    ['no colon', 'max_batch_size 8', "m/config.pbtxt:1:16: max_batch_size: expected ':' after max_batch_size, found '8'"],
    ['map entry', 'parameters { name: "a" value { string_value: "b" } }', "m/config.pbtxt:1:14: parameters: expected 'key' or 'value', found 'name' (an entry is written { key: ... value: ... })"],
    ['inside a map value', 'parameters { key: "level" value { string_valu: "b" } }', `m/config.pbtxt:1:35: parameters["level"]: expected a field of ModelParameter, found 'string_valu' (did you mean string_value?)`],
    ['behind a comment and tabs', '# name: "x"\n\tmax_batch_size: x # why', "m/config.pbtxt:2:18: max_batch_size: expected an integer, found 'x'"],
  ])('%s', (_name, text, expected) => {
    const [first, ...others] = faults(text);
    if (typeof expected === 'string') expect(first).toBe(expected);
    else expect(first).toMatch(expected);
    expect(others).toEqual([]);
  }); // prettier-ignore
});

describe('several faults', () => {
  test('are all reported', () => {
    const lines = faults(
      'max_batch_sizes: 8\ninput [\n  { name: a data_type: TYPE_FP33 },\n  { dims: [ 1, y ] }\n]\noutput { nam: "b" }\n',
    );
    expect(lines.map((line) => /^m\/config.pbtxt:(\d+:\d+):/.exec(line)?.[1])).toEqual(['1:1', '3:11', '3:24', '4:16', '6:10']);
  });

  test('are cut off where they become noise, and hostile texts end quickly', () => {
    expect(faults('bad: 1\n'.repeat(10_000)).length).toBeLessThanOrEqual(20);
    expect(faults('input { '.repeat(5000)).length).toBeGreaterThan(0);
    expect(faults('{'.repeat(50_000)).length).toBeGreaterThan(0);
    expect(faults(`name: "${'\\'.repeat(100_001)}`).length).toBeGreaterThan(0);
  });
});

describe('a right text', () => {
  const text = parseConfigText(
    `name: "m" # the name
max_batch_size: 0
input [
  { name: "a" data_type: TYPE_FP32 dims: [ 1, 2 ] },
  { name: "b", data_type: TYPE_FP32, dims: 3 dims: 4 }
]
output < name: 'o' data_type: TYPE_STRING dims: [ 1 ] >
parameters { key: "k" value: { string_value: "one" " two" } }
dynamic_batching { priority_levels: 0x10 default_priority_level: 010 }
`,
    'm/config.pbtxt',
  );

  test('is parsed', () => {
    expect(text.config).toMatchObject({
      name: 'm',
      input: [{ dims: [1n, 2n] }, { dims: [3n, 4n] }],
      parameters: { k: { stringValue: 'one two' } },
    });
    expect(text.config.schedulingChoice.value).toMatchObject({ priorityLevels: 16n, defaultPriorityLevel: 8n });
  });

  test.each([
    ['name', { line: 1, column: 1 }],
    ['input[0].dims', { line: 4, column: 36 }],
    ['input[0].dims[1]', { line: 4, column: 47 }],
    ['input[1].name', { line: 5, column: 5 }],
    ['input[1].dims[1]', { line: 5, column: 52 }],
    ['output[0].data_type', { line: 7, column: 20 }],
    ['parameters["k"]', { line: 8, column: 12 }],
    ['parameters["k"].string_value', { line: 8, column: 32 }],
    ['dynamic_batching.default_priority_level', { line: 9, column: 42 }],
  ])('places %s', (path, place) => {
    expect(text.locate(path)).toEqual(place);
  });

  test('falls back to what is around a field that is not stated', () => {
    expect(text.locate('input[1].reshape.shape')).toEqual({ line: 5, column: 3 });
    expect(text.locate('version_policy')).toBeUndefined();
    expect(text.locate('')).toBeUndefined();
  });

  test('knows what is stated, be it with its default', () => {
    expect(text.states('max_batch_size')).toBe(true);
    expect(text.states('backend')).toBe(false);
  });
});
