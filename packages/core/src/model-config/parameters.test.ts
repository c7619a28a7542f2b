/** Paceline's own parameters of a model: values that say nothing are refused, what they replace is named. */
import { create } from '@bufbuild/protobuf';
import { describe, expect, test } from '@jest/globals';
import type { ModelFileDescription } from '@paceline/protocol';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';
import { IssueList } from './issue.js';
import { checkBatchDependence, checkParameters, latencyObjectiveUs, replicasOf } from './parameters.js';

function config(
  parameters: Readonly<Record<string, string>>,
  dynamic: { preferredBatchSize?: number[]; maxQueueDelayMicroseconds?: bigint } = {},
): ModelConfig {
  return create(ModelConfigSchema, {
    name: 'm',
    maxBatchSize: 8,
    parameters: Object.fromEntries(Object.entries(parameters).map(([key, stringValue]) => [key, { stringValue }])),
    schedulingChoice: { case: 'dynamicBatching', value: dynamic },
  });
}

function check(c: ModelConfig): { issues: string[]; warnings: string[] } {
  const issues = new IssueList();
  const warnings = checkParameters(c, issues);
  return { issues: issues.issues.map(({ path, message }) => `${path}: ${message}`), warnings: warnings.map(({ path }) => path) };
}

describe('latency_objective_ms', () => {
  test.each([
    ['40', 40_000],
    [' 0.5 ', 500],
    ['3600000', 3_600_000_000],
  ])('%j is %i us', (text, us) => {
    const c = config({ latency_objective_ms: text });
    expect(latencyObjectiveUs(c)).toBe(us);
    expect(check(c)).toEqual({ issues: [], warnings: [] });
  });

  test.each(['', '0', '-5', '40ms', '1e3', 'NaN', '3600001'])('%j is refused, with what was expected and found', (text) => {
    const c = config({ latency_objective_ms: text });
    expect(latencyObjectiveUs(c)).toBeUndefined();
    expect(check(c).issues).toEqual([
      `parameters["latency_objective_ms"]: parameter 'latency_objective_ms' of model 'm' must be a number of milliseconds above 0 and at most 3600000, got '${text}'`,
    ]);
  });

  test('says which fields it replaces', () => {
    const c = config({ latency_objective_ms: '40' }, { preferredBatchSize: [4, 8], maxQueueDelayMicroseconds: 100n });
    expect(check(c).warnings).toEqual(['dynamic_batching.max_queue_delay_microseconds', 'dynamic_batching.preferred_batch_size']);
    expect(check(config({ latency_objective_ms: '40' }, { preferredBatchSize: [8] })).warnings).toEqual([]);
    expect(check(config({}, { preferredBatchSize: [4] })).warnings).toEqual([]);
  });
});

describe('replicas', () => {
  test.each([
    ['1', 1],
    [' 3 ', 3],
    ['10000', 10_000],
  ])('%j is %i', (text, replicas) => {
    const c = config({ replicas: text });
    expect(replicasOf(c)).toBe(replicas);
    expect(check(c).issues).toEqual([]);
  });

  test.each(['', '0', '-1', '1.5', 'all', '10001'])('%j is refused, with what was expected and found', (text) => {
    const c = config({ replicas: text });
    expect(replicasOf(c)).toBeUndefined();
    expect(check(c).issues).toEqual([
      `parameters["replicas"]: parameter 'replicas' of model 'm' must be a whole number of workers from 1 to 10000, got '${text}'`,
    ]);
  });

  test('is not there unless it is said', () => expect(replicasOf(config({}))).toBeUndefined());
});

describe('batch_invariant', () => {
  const file: ModelFileDescription = {
    inputs: [],
    outputs: [],
    irVersion: 8,
    opsets: {},
    producer: '',
    metadata: {},
    operators: ['DynamicQuantizeLinear', 'MatMulInteger'],
  };

  test('a model that quantises over the batch is reported unless it is set, or nothing is batched', () => {
    const [warning] = checkBatchDependence(config({}), file);
    expect(warning?.path).toBe('dynamic_batching');
    expect(warning?.message).toContain("model 'm' quantises activations over the whole batch (DynamicQuantizeLinear)");
    expect(checkBatchDependence(config({ batch_invariant: 'true' }), file)).toEqual([]);
    expect(checkBatchDependence(config({}), { ...file, operators: ['QuantizeLinear', 'MatMul'] })).toEqual([]);
    expect(checkBatchDependence(create(ModelConfigSchema, { name: 'm', maxBatchSize: 8 }), file)).toEqual([]);
  });

  test('is true or false', () => {
    expect(check(config({ batch_invariant: 'true' })).issues).toEqual([]);
    expect(check(config({ batch_invariant: 'yes' })).issues).toEqual([
      `parameters["batch_invariant"]: parameter 'batch_invariant' of model 'm' must be 'true' or 'false', got 'yes'`,
    ]);
  });
});
