import { create } from '@bufbuild/protobuf';
import { describe, expect, test } from '@jest/globals';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import { configOf } from '../testing/samples.js';
import { judgeOnnxOptions, onnxOptions } from './session-options.js';

const withParameters = (parameters: Record<string, string>) => onnxOptions(configOf('m', { parameters }));

test('without a word: one thread, no spinning, every optimisation', () => {
  expect(withParameters({})).toEqual({
    options: {
      intraOpNumThreads: 1,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      enableCpuMemArena: true,
      enableMemPattern: true,
      extra: { 'session.intra_op.allow_spinning': '0', 'session.inter_op.allow_spinning': '0' },
    },
    gpuProviders: [],
    warnings: [],
  });
});

test('parameters in the names of the onnxruntime backend', () => {
  const { options, warnings } = withParameters({
    intra_op_thread_count: '4',
    inter_op_thread_count: '2',
    execution_mode: '1',
    enable_mem_arena: '0',
    enable_mem_pattern: '0',
    'session.disable_prepacking': '1',
    'memory.enable_memory_arena_shrinkage': 'cpu:0',
    my_own: 'anything',
  });
  expect(options).toMatchObject({
    intraOpNumThreads: 4,
    interOpNumThreads: 2,
    executionMode: 'parallel',
    enableCpuMemArena: false,
    enableMemPattern: false,
  });
  expect(options.extra).toMatchObject({ 'session.disable_prepacking': '1' });
  expect(warnings).toEqual([expect.stringContaining("'memory.enable_memory_arena_shrinkage'")]);
});

test.each([
  [-1, 'basic'],
  [0, 'all'],
  [1, 'extended'],
  [2, 'disabled'],
])('optimization.graph.level %d is %s', (level, expected) => {
  const config = create(ModelConfigSchema, { name: 'm', optimization: { graph: { level } } });
  expect(onnxOptions(config).options.graphOptimizationLevel).toBe(expected);
});

test.each([
  ['a level there is not', { optimization: { graph: { level: 3 } } }, 'optimization.graph.level'],
  [
    'an accelerator of the processor',
    { optimization: { executionAccelerators: { cpuExecutionAccelerator: [{ name: 'openvino' }] } } },
    "names 'openvino' for the processor",
  ],
  [
    'a thread count that is no number',
    { parameters: { intra_op_thread_count: { stringValue: 'two' } } },
    "must be a whole number from 0 to 1024, got 'two'",
  ],
])('%s is refused by name', (_, fields, text) => {
  expect(() => onnxOptions(create(ModelConfigSchema, { name: 'm', ...fields }))).toThrow(text);
});

describe('on a GPU', () => {
  const accelerated = (name: string, parameters: Record<string, string> = {}) =>
    create(ModelConfigSchema, {
      name: 'm',
      optimization: { executionAccelerators: { gpuExecutionAccelerator: [{ name, parameters }] } },
    });

  test('the providers, TensorRT before CUDA where it is asked for', () => {
    expect(onnxOptions(create(ModelConfigSchema, { name: 'm' }), true).gpuProviders).toEqual(['cuda']);
    expect(onnxOptions(accelerated('tensorrt', { precision_mode: 'FP32' }), true).gpuProviders).toEqual(['tensorrt', 'cuda']);
  });

  test.each([
    ['max_workspace_size_bytes', '1073741824'],
    ['precision_mode', 'FP16'],
    ['trt_engine_cache_enable', 'true'],
  ])('TensorRT does not get %s, so it is refused by name', (key, value) => {
    expect(() => onnxOptions(accelerated('tensorrt', { [key]: value }), true)).toThrow(
      `gpu_execution_accelerator[0] of model 'm' sets ${key} to '${value}', which ONNX Runtime for Node does not hand to TensorRT`,
    );
  });

  test('another accelerator is refused, a bound on memory too, a hint for speed is remarked', () => {
    expect(() => onnxOptions(accelerated('gpu_io'), true)).toThrow("names 'gpu_io'; on a GPU there is 'tensorrt'");
    const config = configOf('m', { parameters: { gpu_mem_limit: '1000', cudnn_conv_algo_search: '1' } });
    expect(() => onnxOptions(config, true)).toThrow(
      "parameter 'gpu_mem_limit' of model 'm' is '1000', and ONNX Runtime for Node cannot bound",
    );
    expect(judgeOnnxOptions(config, true).warnings.map(({ path }) => path)).toEqual(['parameters["cudnn_conv_algo_search"]']);
  });

  test('without an instance on a GPU all of it is unused', () => {
    expect(onnxOptions(accelerated('tensorrt', { precision_mode: 'FP16' })).warnings).toEqual([
      expect.stringContaining('no instance runs on a GPU'),
    ]);
    expect(withParameters({ gpu_mem_limit: '1' }).warnings).toEqual([
      "parameter 'gpu_mem_limit' of model 'm' is not used: no instance runs on a GPU",
    ]);
  });
});
