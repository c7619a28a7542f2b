// What a configuration gets from the model file, and what it never gets.
import { describe, expect, test } from '@jest/globals';
import { modelConfigToJson } from './json.js';
import { accepted, batching, file, IO, refused, tensor } from './testing/judge.js';

describe('completion from the model file', () => {
  test('of a model without configuration that can batch', () => {
    const { config, inputs, outputs } = accepted(undefined, batching);
    const json = modelConfigToJson(config);
    expect(json).toMatchObject({
      name: 'm',
      platform: 'onnxruntime_onnx',
      backend: 'onnxruntime',
      default_model_filename: 'model.onnx',
      version_policy: { latest: { num_versions: 1 } },
      max_batch_size: 4,
      dynamic_batching: { preferred_batch_size: [4] },
      instance_group: [{ name: 'm', kind: 'KIND_CPU', count: 2 }],
      optimization: { input_pinned_memory: { enable: true }, output_pinned_memory: { enable: true } },
    });
    expect(inputs).toEqual([{ name: 'IN', datatype: 'FP32', shape: [-1, 4], optional: false }]);
    expect(outputs).toEqual([{ name: 'OUT', datatype: 'FP32', shape: [-1, 4], optional: false }]);
  });

  test('of a model with a fixed first dimension: no batching', () => {
    const { config, inputs } = accepted(undefined, file([tensor('IN', [2, 2], 'INT64')], [tensor('OUT', [2, 2], 'INT64')]));
    expect(config.maxBatchSize).toBe(0);
    expect(config.schedulingChoice.case).toBeUndefined();
    expect(inputs[0]?.shape).toEqual([2, 2]);
  });

  test('one output without a variable first dimension is enough not to batch', () => {
    const { config } = accepted(undefined, file([tensor('IN', [-1, 4])], [tensor('OUT', [-1, 4]), tensor('STATE', [2])]));
    expect(config.maxBatchSize).toBe(0);
  });

  test('a stated max_batch_size is never changed, be it 0', () => {
    expect(accepted('max_batch_size: 0', batching).config.maxBatchSize).toBe(0);
    expect(accepted('max_batch_size: 0', batching).inputs[0]?.shape).toEqual([-1, 4]);
    const two = accepted('max_batch_size: 2', batching);
    expect(modelConfigToJson(two.config)).toMatchObject({ max_batch_size: 2, dynamic_batching: { preferred_batch_size: [2] } });
    const one = accepted('max_batch_size: 1', batching);
    expect(one.config.schedulingChoice.case).toBeUndefined();
  });

  test('nothing is completed, and no batcher added, where inputs and outputs are written', () => {
    const { config } = accepted(`max_batch_size: 8 ${IO}`, batching);
    expect(config.schedulingChoice.case).toBeUndefined();
    expect(accepted(IO.replace(/\[ 4 \]/g, '[ -1, 4 ]'), batching).config.maxBatchSize).toBe(0);
  });

  test('outputs alone are completed beside written inputs', () => {
    const { outputs } = accepted('max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }', batching);
    expect(outputs.map(({ name }) => name)).toEqual(['OUT']);
  });

  test('a max_batch_size that the model cannot have is refused with the line to write', () => {
    const [issue] = refused('max_batch_size: 8', file([tensor('IN', [1, 3])], [tensor('OUT', [1, 3])]));
    expect(issue).toMatchObject({
      path: 'max_batch_size',
      hint: expect.stringContaining("'IN' [1,3] is not variable: set max_batch_size: 0"),
    });
    expect(issue?.message).toBe(
      "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
    );
  });

  test('one value a row and values of rank 0 get a shape clients can send', () => {
    const rows = accepted(undefined, file([tensor('IN', [-1])], [tensor('OUT', [-1])]));
    expect(rows.inputs[0]).toMatchObject({ shape: [-1, 1], modelShape: [-1] });
    const scalar = accepted(undefined, file([tensor('IN', [2]), tensor('RATE', [], 'INT64')], [tensor('OUT', [2])]));
    expect(scalar.inputs[1]).toMatchObject({ shape: [1], modelShape: [] });
  });

  test('inputs with a default in the file are left out', () => {
    const { inputs } = accepted(
      undefined,
      file([tensor('IN', [-1, 4]), tensor('W', [4], 'FP32', { hasDefault: true })], [tensor('OUT', [-1, 4])]),
    );
    expect(inputs.map(({ name }) => name)).toEqual(['IN']);
  });

  test('types that the protocol or the backend does not have are refused by name', () => {
    const issues = refused(
      undefined,
      file(
        [tensor('IN', [4], undefined, { datatype: undefined, elementType: 'FLOAT8E4M3FN' })],
        [tensor('OUT', [4], 'BF16', { elementType: 'BFLOAT16' })],
      ),
    );
    expect(issues.map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        "unsupported datatype FLOAT8E4M3FN for input 'IN' for model 'm'",
        "unsupported datatype BFLOAT16 for output 'OUT' for model 'm'",
      ]),
    );
  });
});
