// Configurations through both stages: what is refused, with which words, and where.
import { describe, expect, test } from '@jest/globals';
import { fromText } from '@bufbuild/protobuf/txtpb';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import { prepareConfig } from './prepare.js';
import { accepted, batching, file, IO, refused, tensor } from './testing/judge.js';

describe('name, backend and platform', () => {
  const first = (text: string, files?: string[]): string | undefined => refused(text, batching, files)[0]?.message;

  test('the platform decides the backend, and the other way round', () => {
    expect(accepted(`platform: "onnxruntime_onnx" max_batch_size: 8 ${IO}`, batching).config.backend).toBe('onnxruntime');
    expect(accepted(`backend: "onnxruntime" max_batch_size: 8 ${IO}`, batching).config.platform).toBe('onnxruntime_onnx');
  });

  test('a written model file name ending in .onnx says it by itself', () => {
    const prepared = prepareConfig({
      model: 'm',
      config: fromText(ModelConfigSchema, 'default_model_filename: "rec.onnx"'),
      files: ['rec.onnx'],
    });
    expect(prepared).toMatchObject({ issues: [], config: { backend: 'onnxruntime', defaultModelFilename: 'rec.onnx' } });
  });

  test('the configuration as written is left alone', () => {
    const config = fromText(ModelConfigSchema, 'max_batch_size: 8 dynamic_batching { }');
    prepareConfig({ model: 'm', config, files: ['model.onnx'] });
    expect(config.name).toBe('');
    expect(config.schedulingChoice.value).toMatchObject({ preferredBatchSize: [] });
  });

  test.each([
    ['name: "other"', "expected 'name' to be 'm', the name of the model's folder, but it is 'other'"],
    ['platform: "zzz"', "unexpected platform type 'zzz' for m"],
    ['platform: "onnxruntime_onnx" backend: "python"', "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, python"],
    ['backend: "python"', "unable to find backend library for backend 'python', try specifying runtime on the model configuration."],
    [
      'platform: "tensorrt_plan"',
      "unable to find backend library for backend 'tensorrt', try specifying runtime on the model configuration.",
    ],
    ['platform: "ensemble"', 'ensemble scheduling must be set for ensemble m whose platform is ensemble'],
  ])('%s is refused', (text, message) => {
    expect(first(text)).toBe(message);
  });

  test('the file decides where nothing is written', () => {
    expect(first('', ['model.plan'])).toMatch(/backend 'tensorrt'/);
    expect(first('', ['model.xyz'])).toMatch(/backend 'xyz'/);
    expect(refused('', batching, ['weights.bin'])[0]).toMatchObject({
      message: "must specify 'platform' or 'backend' for 'm'",
      hint: expect.stringContaining('weights.bin'),
    });
  });
});

describe('scheduling', () => {
  test.each([
    ['max_batch_size: -1', 'max_batch_size', "'max_batch_size' must be non-negative value for m"],
    ['max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 2, 0 ] }', 'dynamic_batching.preferred_batch_size[1]',
      'dynamic batching preferred size must be positive for m'],
    ['max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 16 ] }', 'dynamic_batching.preferred_batch_size[0]',
      'dynamic batching preferred size must be <= max batch size for m'],
    ['max_batch_size: 4 dynamic_batching { priority_levels: 2 }', 'dynamic_batching.default_priority_level',
      'default priority level must be in range [1, 2] for m'],
    ['max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 5 }', 'dynamic_batching.default_priority_level',
      'default priority level must be in range [1, 2] for m'],
    ['max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } } }',
      'dynamic_batching.priority_queue_policy["3"]', 'priority queue policy must have priority level in range [1, 2] for m'],
    ['max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }',
      'dynamic_batching.preserve_ordering', "Only one priority level is allowed when 'preserve_ordering' is true for m"],
    ['max_batch_size: 4 dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }',
      'dynamic_batching.preserve_ordering', "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"],
    ['max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }',
      'dynamic_batching.max_queue_delay_microseconds', 'max queue delay must be <= 9007199254740991 microseconds for m'],
  ])('%s', (text, path, message) => {
    const issues = refused(`${text} ${IO}`, batching);
    expect(issues.map((issue) => [issue.path, issue.message])).toEqual([[path, message]]);
  }); // prettier-ignore

  test('dynamic batching without a batch dimension is accepted, as in Triton', () => {
    expect(
      accepted(`max_batch_size: 0 dynamic_batching { } ${IO}`, file([tensor('IN', [4])], [tensor('OUT', [4])])).config.maxBatchSize,
    ).toBe(0);
  });

  test('all issues of a text are reported together', () => {
    const issues = refused('name: "other" max_batch_size: -1 runtime: "x"', batching);
    expect(issues.map(({ path }) => path)).toEqual(['runtime', 'name', 'max_batch_size']);
  });
});

describe('instance groups', () => {
  const groups = (text: string) => accepted(`max_batch_size: 8 ${IO} ${text}`, batching).config.instanceGroup;

  test('names, kinds and counts', () => {
    expect(groups('').map(({ name, count }) => [name, count])).toEqual([['m', 2]]);
    expect(groups('instance_group [ { }, { name: "x" count: 3 kind: KIND_CPU } ]').map(({ name, count }) => [name, count])).toEqual([['m_0', 2], ['x', 3]]); // prettier-ignore
  });

  test('a GPU is for the worker to have: asking for one is no fault of the text', () => {
    expect(groups('instance_group [ { kind: KIND_GPU gpus: [ 7 ] }, { kind: KIND_MODEL } ]').map(({ count }) => count)).toEqual([1, 1]);
  });

  test.each([
    ['{ kind: KIND_CPU gpus: [ 0 ] }', 'instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs'],
    ['{ kind: KIND_MODEL gpus: [ 0 ] }', 'instance group m_0 of model m has kind KIND_MODEL but specifies one or more GPUs'],
    ['{ gpus: [ -1 ] }', 'instance group m_0 of model m specifies invalid or unsupported gpu id -1'],
    ['{ passive: true }', 'every instance group of model m is passive, so that no request could run'],
    ['{ name: "a" }, { name: "a" }', "instance group name 'a' is used twice for m"],
  ])('%s is refused', (text, message) => {
    expect(refused(`max_batch_size: 8 ${IO} instance_group [ ${text} ]`, batching)[0]?.message).toBe(message);
  });
});

describe('inputs and outputs by themselves', () => {
  test.each([
    ['input { data_type: TYPE_FP32 dims: [ 4 ] }', 'input[0]', 'model input must specify \'name\' for m'],
    ['input { name: "IN" dims: [ 4 ] }', 'input[0].data_type', "model input 'IN' must specify 'data_type' for m"],
    ['input { name: "IN" data_type: TYPE_FP32 }', 'input[0].dims', "model input 'IN' must specify 'dims' for m"],
    ['input { name: "IN" data_type: TYPE_FP32 dims: [ 4, 0 ] }', 'input[0].dims[1]',
      "model input 'IN' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m"],
    ['input { name: "IN" data_type: TYPE_FP32 dims: [ -2 ] }', 'input[0].dims[0]',
      "model input 'IN' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m"],
    ['input { name: "IN" data_type: TYPE_BF16 dims: [ 4 ] }', 'input[0].data_type', "unsupported datatype TYPE_BF16 for input 'IN' for model 'm'"],
    ['input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] format: FORMAT_NCHW }', 'input[0].format', 'model input NCHW require 3 dims for m'],
    ['input { name: "IN" data_type: TYPE_FP32 dims: [ 9007199254740993 ] }', 'input[0].dims[0]', "model input 'IN' dimension 9007199254740993 is too large for m"],
    ['input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 3 ] } }', 'input[0].reshape.shape',
      "model input 'IN' has different size for dims and reshape for m"],
    ['input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] reshape { shape: [ 4 ] } }', 'input[0].reshape.shape',
      "model input 'IN' has different number of variable-size dimensions for dims and reshape for m"],
    ['input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 0 ] } }', 'input[0].reshape.shape',
      "model input 'IN' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m"],
  ])('%s', (text, path, message) => {
    const issues = refused(`max_batch_size: 8 ${text} output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }`, batching);
    expect(issues.map((issue) => [issue.path, issue.message])).toEqual([[path, message]]);
  }); // prettier-ignore

  test('an empty reshape without batching', () => {
    const [issue] = refused(
      'max_batch_size: 0 input { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] reshape { } } output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }',
      batching,
    );
    expect(issue?.message).toBe(
      "model input 'IN' cannot have empty reshape for non-batching model as scalar tensors are not supported for m",
    );
  });

  test('outputs are judged alike, and names may not repeat', () => {
    const io =
      'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "OUT" dims: [ 4 ] } output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }';
    expect(refused(`max_batch_size: 8 ${io}`, batching).map(({ message }) => message)).toEqual([
      "model output 'OUT' must specify 'data_type' for m",
      "model output 'OUT' is specified twice for m",
    ]);
  });
});

describe('against the model file', () => {
  const input = (text: string): string => `max_batch_size: 8 input [ ${text} ] output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }`;

  test('shape with the batch dimension spelled out, and the line to write', () => {
    const [issue] = refused(input('{ name: "IN" data_type: TYPE_FP32 dims: [ 5 ] }'), batching);
    expect(issue).toEqual({
      path: 'input[0].dims',
      message:
        "model 'm', tensor 'IN': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,5])",
      hint: 'set dims: [ 4 ]',
    });
  });

  test('a variable dimension where the file is fixed is a mismatch, the other way round is not', () => {
    expect(refused(input('{ name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }'), batching)).toHaveLength(1);
    accepted(input('{ name: "IN" data_type: TYPE_FP32 dims: [ 7 ] }'), file([tensor('IN', [-1, -1])], [tensor('OUT', [-1, 4])]));
  });

  test('without batching the configuration shape stands alone', () => {
    const [issue] = refused(`max_batch_size: 0 ${IO}`, file([tensor('IN', [1, 4])], [tensor('OUT', [4])]));
    expect(issue?.message).toBe(
      "model 'm', tensor 'IN': the model expects 2 dimensions (shape [1,4]) but the model configuration specifies 1 dimensions (shape [4])",
    );
    expect(issue?.hint).toBe('set dims: [ 1, 4 ]');
  });

  test('a first dimension that is fixed names the lines that would be right', () => {
    const [issue] = refused(`max_batch_size: 8 ${IO}`, file([tensor('IN', [1, 3, 512, 512])], [tensor('OUT', [-1, 4])]));
    expect(issue).toMatchObject({
      path: 'max_batch_size',
      message:
        "model 'm', tensor 'IN': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [1,3,512,512]",
      hint: "the model's first dimension is fixed to 1: set max_batch_size: 0 and dims: [ 1, 3, 512, 512 ]",
    });
  });

  test('one value a row needs a reshape and the hint says so', () => {
    const rows = file([tensor('IN', [-1])], [tensor('OUT', [-1, 4])]);
    expect(refused(input('{ name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }'), rows)[0]?.hint).toBe(
      'set dims: [ 1 ] and reshape: { shape: [ ] }',
    );
    expect(accepted(input('{ name: "IN" data_type: TYPE_FP32 dims: [ 1 ] reshape { } }'), rows).inputs[0]?.modelShape).toEqual([-1]);
  });

  test('data types', () => {
    expect(refused(input('{ name: "IN" data_type: TYPE_INT32 dims: [ 4 ] }'), batching)[0]).toMatchObject({
      message: "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'IN', model provides TYPE_FP32",
      hint: 'set data_type: TYPE_FP32',
    });
  });

  test('names and counts', () => {
    const one = '{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }';
    expect(refused(input(one), batching)[0]?.message).toBe("unexpected inference input 'X', allowed inputs are: IN");
    const two = '{ name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "X" data_type: TYPE_FP32 dims: [ 4 ] }';
    expect(refused(input(two), batching)[0]?.message).toBe("unable to load model 'm', configuration expects 2 inputs, model provides 1");
    const outputs = `max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }`;
    expect(refused(outputs, batching)[0]?.message).toBe("unexpected inference output 'Y', allowed outputs are: OUT");
  });

  test('a configuration may leave outputs of the file out', () => {
    expect(
      accepted(`max_batch_size: 8 ${IO}`, file([tensor('IN', [-1, 4])], [tensor('OUT', [-1, 4]), tensor('MORE', [-1])])).outputs,
    ).toHaveLength(1);
  });
});
