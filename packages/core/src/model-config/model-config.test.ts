// The small pure parts: version policy, data types, JSON form, shapes under reshape.
import { describe, expect, test } from '@jest/globals';
import { fromText } from '@bufbuild/protobuf/txtpb';
import { DataType as ConfigDataType, ModelConfigSchema, ModelVersionPolicySchema } from '@paceline/protocol/model-config';
import { DATA_TYPES } from '@paceline/tensor';
import { configDataType, configDataTypeName, isServedDataType, wireDataType } from './datatype.js';
import { jsonStates, modelConfigFromJson, modelConfigToJson } from './json.js';
import { mapShape } from './validate-reshape.js';
import { selectVersions } from './version-policy.js';

describe('version policy', () => {
  const select = (text: string | undefined, present: string[]) =>
    selectVersions(text === undefined ? undefined : fromText(ModelVersionPolicySchema, text), present);

  test.each([
    [undefined, ['10'], []],
    ['', ['10'], []],
    ['latest { num_versions: 1 }', ['10'], []],
    ['latest { num_versions: 2 }', ['9', '10'], []],
    ['latest { num_versions: 99 }', ['1', '9', '10'], []],
    ['latest { }', [], []],
    ['all { }', ['1', '9', '10'], []],
    ['specific { versions: [ 10, 1 ] }', ['1', '10'], []],
    ['specific { versions: [ 1, 7 ] }', ['1'], ['7']],
    ['specific { }', [], []],
  ])('%s', (text, selected, absent) => {
    expect(select(text, ['10', '9', '1'])).toEqual({ selected, absent });
  });

  test('orders by number beyond the safe integers', () => {
    expect(select(undefined, ['9223372036854775807', '9223372036854775806']).selected).toEqual(['9223372036854775807']);
  });

  test('of no versions selects none', () => {
    expect(select(undefined, [])).toEqual({ selected: [], absent: [] });
  });
});

describe('data types', () => {
  test('every wire type has a configuration type and back; only BF16 is not served', () => {
    for (const name of DATA_TYPES) expect(wireDataType(configDataType(name))).toBe(name);
    expect(DATA_TYPES.filter((name) => !isServedDataType(name))).toEqual(['BF16']);
    expect(configDataType('BYTES')).toBe(ConfigDataType.TYPE_STRING);
    expect(wireDataType(ConfigDataType.TYPE_INVALID)).toBeUndefined();
    expect(configDataTypeName(ConfigDataType.TYPE_FP32)).toBe('TYPE_FP32');
  });
});

describe('JSON form', () => {
  const config = fromText(
    ModelConfigSchema,
    `name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" max_batch_size: 1
     input { name: "I" data_type: TYPE_INT64 dims: [ -1, 6 ] reshape { shape: [ -1, 2, 3 ] } }
     output { name: "O" data_type: TYPE_STRING dims: [ 1 ] label_filename: "l.txt" reshape { } }
     version_policy { specific { versions: [ 1, 3 ] } }
     dynamic_batching { priority_levels: 3 default_priority_level: 2 max_queue_delay_microseconds: 18446744073709551615
       priority_queue_policy { key: 3 value { max_queue_size: 2 default_timeout_microseconds: 7 } } }
     optimization { cuda { graph_spec { input { key: "I" value { dim: [ 5 ] } } } } }
     parameters { key: "__proto__" value { string_value: "x" } }`,
  );
  const json = modelConfigToJson(config);

  test('prints every primitive under its .proto name, 64-bit fields of the list as numbers', () => {
    expect(json['input']).toEqual([
      { name: 'I', data_type: 'TYPE_INT64', format: 'FORMAT_NONE', dims: [-1, 6], reshape: { shape: [-1, 2, 3] }, is_shape_tensor: false, allow_ragged_batch: false, optional: false, is_non_linear_format_io: false },
    ]); // prettier-ignore
    expect(json['version_policy']).toEqual({ specific: { versions: [1, 3] } });
    expect(json['dynamic_batching']).toEqual({
      preferred_batch_size: [],
      max_queue_delay_microseconds: '18446744073709551615',
      preserve_ordering: false,
      priority_levels: 3,
      default_priority_level: 2,
      priority_queue_policy: {
        '3': { timeout_action: 'REJECT', default_timeout_microseconds: 7, allow_timeout_override: false, max_queue_size: 2 },
      },
    });
    expect(json).toMatchObject({ batch_input: [], metric_tags: {}, default_model_filename: '', runtime: '' });
  });

  test('leaves 64-bit fields outside the list as strings', () => {
    expect(JSON.stringify(json['optimization'])).toContain('"dim":["5"]');
  });

  test('has the key order of Triton', () => {
    expect(Object.keys(json).slice(0, 7)).toEqual(['name', 'platform', 'backend', 'runtime', 'version_policy', 'max_batch_size', 'input']);
    expect(Object.keys((json['output'] as object[])[0] ?? {})).toEqual([
      'name', 'data_type', 'dims', 'reshape', 'label_filename', 'is_shape_tensor', 'is_non_linear_format_io',
    ]); // prettier-ignore
  });

  test('keeps prototypes clean', () => {
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['string_value']).toBeUndefined();
  });

  test('reads back what it writes, and numbers and strings alike', () => {
    expect(modelConfigFromJson(JSON.stringify(json)).input[0]?.dims).toEqual([-1n, 6n]);
    expect(
      modelConfigFromJson('{"max_batch_size": 8, "version_policy": {"specific": {"versions": ["2", 3]}}}').versionPolicy?.policyChoice
        .value,
    ).toMatchObject({ versions: [2n, 3n] });
  });

  test.each(['x', '[]', '5', '{"foo": 1}', '{"max_batch_size": "eight"}', '{"input": [{"data_type": "TYPE_NOPE"}]}'])(
    'refuses %s',
    (text) => {
      expect(() => modelConfigFromJson(text)).toThrow();
    },
  );

  test('knows whether a field is stated', () => {
    expect(jsonStates('{"max_batch_size": 0}', 'max_batch_size', 'maxBatchSize')).toBe(true);
    expect(jsonStates('{"maxBatchSize": 0}', 'max_batch_size', 'maxBatchSize')).toBe(true);
    expect(jsonStates('{}', 'max_batch_size', 'maxBatchSize')).toBe(false);
  });
});

describe('mapShape', () => {
  test.each([
    [
      [5, 6],
      [-1, 6],
      [-1, 2, 3],
      [5, 2, 3],
    ],
    [[5, 1], [-1, 1], [-1], [5]],
    [[1], [1], [], []],
    [
      [3, 7, 4, 9],
      [-1, -1, 4, -1],
      [-1, -1, 2, 2, -1],
      [3, 7, 2, 2, 9],
    ],
  ])('%j in the form %j becomes %j', (actual, from, to, expected) => {
    expect(mapShape(actual, from, to)).toEqual(expected);
    expect(mapShape(expected, to, from)).toEqual(actual);
  });
});
