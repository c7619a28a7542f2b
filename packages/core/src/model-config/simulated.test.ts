/** The simulated accelerator in a configuration: what its parameters may say, and that its tensors must be written down. */
import { create } from '@bufbuild/protobuf';
import { fromText } from '@bufbuild/protobuf/txtpb';
import { describe, expect, test } from '@jest/globals';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';
import { IssueList } from './issue.js';
import { finishConfig, prepareConfig } from './prepare.js';
import { checkSimulated, SIMULATED_PARAMETERS, simulatedAccelerator, simulatedRange, type SimulatedParameter } from './simulated.js';

function config(parameters: Readonly<Record<string, string>>, backend = 'simulated'): ModelConfig {
  return create(ModelConfigSchema, {
    name: 'm',
    backend,
    parameters: Object.fromEntries(Object.entries(parameters).map(([key, stringValue]) => [key, { stringValue }])),
  });
}

function check(c: ModelConfig): { issues: string[]; warnings: string[] } {
  const issues = new IssueList();
  const warnings = checkSimulated(c, issues);
  return { issues: issues.issues.map(({ path, message }) => `${path}: ${message}`), warnings: warnings.map(({ message }) => message) };
}

const DEFAULTS = { alphaMs: 0, betaMs: 0, jitter: 0, seed: undefined, memoryBytes: 0, failureRate: 0, crashRate: 0, hangRate: 0 };

describe('parameters', () => {
  test('all of them are read; what is not set has no effect', () => {
    expect(simulatedAccelerator(config({}))).toEqual(DEFAULTS);
    const c = config({
      simulated_alpha_ms: '40',
      simulated_beta_ms: ' 0.25 ',
      simulated_jitter: '0.1',
      simulated_seed: '42',
      simulated_memory_mb: '1.5',
      simulated_failure_rate: '0.01',
      simulated_crash_rate: '1',
      simulated_hang_rate: '0.5',
    });
    expect(check(c)).toEqual({ issues: [], warnings: [] });
    expect(simulatedAccelerator(c)).toEqual({
      alphaMs: 40,
      betaMs: 0.25,
      jitter: 0.1,
      seed: 42,
      memoryBytes: 1_572_864,
      failureRate: 0.01,
      crashRate: 1,
      hangRate: 0.5,
    });
    expect(Object.keys(c.parameters).sort()).toEqual(Object.keys(SIMULATED_PARAMETERS).sort());
  });

  test.each<[SimulatedParameter, string]>([
    ['simulated_alpha_ms', '-1'],
    ['simulated_alpha_ms', '3600001'],
    ['simulated_beta_ms', '1e3'],
    ['simulated_jitter', '1.01'],
    ['simulated_seed', '1.5'],
    ['simulated_seed', '4294967296'],
    ['simulated_memory_mb', 'much'],
    ['simulated_failure_rate', ''],
    ['simulated_crash_rate', '2'],
    ['simulated_hang_rate', 'NaN'],
  ])('%s: %j is refused, with what was expected and found', (key, text) => {
    expect(check(config({ [key]: text })).issues).toEqual([
      `parameters["${key}"]: parameter '${key}' of model 'm' must be ${simulatedRange(key)}, got '${text}'`,
    ]);
  });

  test('the ranges in words', () => {
    expect(simulatedRange('simulated_alpha_ms')).toBe('a number of milliseconds from 0 to 3600000');
    expect(simulatedRange('simulated_seed')).toBe('a whole number from 0 to 4294967295');
    expect(simulatedRange('simulated_memory_mb')).toBe('a number of megabytes (of 1,048,576 bytes) from 0 to 1048576');
  });

  test('a name that does not exist is refused, a simulation of another backend is remarked', () => {
    expect(check(config({ simulated_alpha: '1' })).issues).toEqual([
      `parameters["simulated_alpha"]: unexpected parameter 'simulated_alpha' of model 'm'`,
    ]);
    const onnx = config({ simulated_alpha_ms: '1' }, 'onnxruntime');
    expect(check(onnx)).toEqual({
      issues: [],
      warnings: [`parameter 'simulated_alpha_ms' of model 'm' is not used, because its backend is not 'simulated'`],
    });
    expect(simulatedAccelerator(onnx)).toBeUndefined();
  });
});

describe('a model without a file', () => {
  const IO = 'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }';
  const OPTIONS = { maxBatchSizeStated: true, defaultMaxBatchSize: 4, cpuInstanceCount: 2 };

  function finish(text: string, files: readonly string[] = []) {
    const written = fromText(ModelConfigSchema, text);
    const prepared = prepareConfig({ model: 'm', config: written, files });
    expect(prepared.issues).toEqual([]);
    return finishConfig(prepared.config, undefined, OPTIONS);
  }

  test('is what the configuration says, one accelerator unless more are asked for', () => {
    const finished = finish(`backend: "simulated" max_batch_size: 8 ${IO}`);
    if (!finished.ok) throw new Error(JSON.stringify(finished.issues));
    expect(finished.inputs).toEqual([{ name: 'IN', datatype: 'FP32', shape: [-1, 4], optional: false }]);
    expect(finished.outputs).toEqual([{ name: 'OUT', datatype: 'FP32', shape: [-1, 4], optional: false }]);
    expect(finished.config.instanceGroup.map(({ name, count }) => [name, count])).toEqual([['m', 1]]);
    expect(finished.config.schedulingChoice.case).toBeUndefined();
  });

  test('needs its tensors written down', () => {
    const finished = finish('backend: "simulated" max_batch_size: 8');
    expect(finished.ok ? [] : finished.issues.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      `input: must specify at least one 'input' for model 'm'`,
      `output: must specify at least one 'output' for model 'm'`,
    ]);
  });

  test('is never guessed from files, and its tensors are judged as any', () => {
    expect(prepareConfig({ model: 'm', config: create(ModelConfigSchema), files: [''] }).issues[0]?.message).toContain(
      "must specify 'platform' or 'backend'",
    );
    const finished = finish(
      'backend: "simulated" input { name: "IN" data_type: TYPE_FP32 dims: [ 0 ] } output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }',
    );
    expect(finished.ok ? [] : finished.issues.map(({ path }) => path)).toEqual(['input[0].dims[0]']);
  });
});
