import { create } from '@bufbuild/protobuf';
import { expect, test } from '@jest/globals';
import { ModelConfigSchema, ModelInstanceGroup_Kind } from '@paceline/protocol/model-config';
import { configOf } from '../testing/samples.js';
import { onnxOptions } from './session-options.js';

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
    'a GPU instance group',
    { instanceGroup: [{ name: 'g', count: 1, kind: ModelInstanceGroup_Kind.GPU }] },
    "instance group 'g' of model 'm' asks for a GPU",
  ],
  ['an accelerator', { optimization: { executionAccelerators: { gpuExecutionAccelerator: [{ name: 'tensorrt' }] } } }, "'tensorrt'"],
  [
    'a thread count that is no number',
    { parameters: { intra_op_thread_count: { stringValue: 'two' } } },
    "must be a whole number from 0 to 1024, got 'two'",
  ],
])('%s is refused by name', (_, fields, text) => {
  expect(() => onnxOptions(create(ModelConfigSchema, { name: 'm', ...fields }))).toThrow(text);
});
