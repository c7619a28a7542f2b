/** From a model configuration to the plain numbers of the batcher. */
import { create } from '@bufbuild/protobuf';
import { describe, expect, test } from '@jest/globals';
import { ModelConfigSchema, ModelQueuePolicy_TimeoutAction, type ModelConfig } from '@paceline/protocol/model-config';
import { batchPolicyOf, DEFAULT_MAX_QUEUE_SIZE, levelOf, queueTimeoutOf } from './policy.js';

type Dynamic = Extract<ModelConfig['schedulingChoice'], { case: 'dynamicBatching' }>['value'];

function config(
  maxBatchSize: number,
  dynamic?: Partial<Omit<Dynamic, '$typeName' | 'defaultQueuePolicy' | 'priorityQueuePolicy'>>,
): ModelConfig {
  return create(ModelConfigSchema, {
    name: 'm',
    maxBatchSize,
    ...(dynamic ? { schedulingChoice: { case: 'dynamicBatching', value: dynamic } } : {}),
  });
}

describe('batchPolicyOf', () => {
  test('a model without dynamic batching, or without a batch dimension, executes requests alone', () => {
    expect(batchPolicyOf(config(8))).toMatchObject({ batching: false, maxRows: 8, maxQueueDelayUs: 0, levels: 1 });
    expect(batchPolicyOf(config(0, {}))).toMatchObject({ batching: false, maxRows: 1 });
  });

  test('the normalised default preferred size leaves the choice to the server', () => {
    expect(batchPolicyOf(config(8, { preferredBatchSize: [8] })).preferredRows).toEqual([]);
    expect(batchPolicyOf(config(8, {})).preferredRows).toEqual([]);
    expect(batchPolicyOf(config(8, { preferredBatchSize: [8, 4, 4] })).preferredRows).toEqual([4, 8]);
  });

  test('delay, order and levels are taken over', () => {
    const p = batchPolicyOf(
      config(8, { maxQueueDelayMicroseconds: 500n, preserveOrdering: true, priorityLevels: 3n, defaultPriorityLevel: 2n }),
    );
    expect(p).toMatchObject({ maxQueueDelayUs: 500, preserveOrdering: true, levels: 3, defaultLevel: 2 });
    expect([0, 1, 3, 4].map((asked) => levelOf(p, asked))).toEqual([2, 1, 3, 2]);
  });

  test('a latency objective takes the place of preferred sizes and delay', () => {
    const p = batchPolicyOf(
      create(ModelConfigSchema, {
        maxBatchSize: 8,
        parameters: { latency_objective_ms: { stringValue: '12.5' } },
        schedulingChoice: { case: 'dynamicBatching', value: { preferredBatchSize: [4], maxQueueDelayMicroseconds: 500n } },
      }),
    );
    expect(p).toMatchObject({ batching: true, objectiveUs: 12_500, preferredRows: [], maxQueueDelayUs: 0 });
    expect(batchPolicyOf(config(8, {})).objectiveUs).toBe(0);
  });

  test.each([
    ['true', false],
    ['false', true],
  ])('batch_invariant %s: requests may share a batch is %s', (stringValue, batching) => {
    const dynamic = { case: 'dynamicBatching', value: {} } as const;
    const p = batchPolicyOf(
      create(ModelConfigSchema, { maxBatchSize: 8, parameters: { batch_invariant: { stringValue } }, schedulingChoice: dynamic }),
    );
    expect(p).toMatchObject({ batching, maxRows: 8 });
  });

  test('no queue is endless', () => {
    expect(batchPolicyOf(config(8)).defaultQueue.maxQueueSize).toBe(DEFAULT_MAX_QUEUE_SIZE);
    expect(batchPolicyOf(config(8, {}), 5).queueTimeoutUs).toBe(5);
  });

  test('a level may have a queue policy of its own', () => {
    const p = batchPolicyOf(
      create(ModelConfigSchema, {
        maxBatchSize: 8,
        schedulingChoice: {
          case: 'dynamicBatching',
          value: {
            priorityLevels: 2n,
            defaultPriorityLevel: 1n,
            defaultQueuePolicy: { defaultTimeoutMicroseconds: 100n, allowTimeoutOverride: true },
            priorityQueuePolicy: { 2: { maxQueueSize: 7, timeoutAction: ModelQueuePolicy_TimeoutAction.DELAY } },
          },
        },
      }),
    );
    expect(p.defaultQueue).toEqual({
      timeoutAction: 'REJECT',
      defaultTimeoutUs: 100,
      allowTimeoutOverride: true,
      maxQueueSize: DEFAULT_MAX_QUEUE_SIZE,
    });
    expect(p.queueByLevel.get(2)).toEqual({ timeoutAction: 'DELAY', defaultTimeoutUs: 0, allowTimeoutOverride: false, maxQueueSize: 7 });
  });
});

describe('queueTimeoutOf', () => {
  const queue = { timeoutAction: 'REJECT', maxQueueSize: 1 } as const;

  test.each([
    [100, true, 0, 100],
    [100, true, 40, 40],
    [100, true, 400, 100],
    [100, false, 40, 100],
    [0, true, 40, 40],
    [0, false, 40, 0],
  ])('default %i, override %s, asked %i: %i', (defaultTimeoutUs, allowTimeoutOverride, askedUs, expected) => {
    expect(queueTimeoutOf({ ...queue, defaultTimeoutUs, allowTimeoutOverride }, askedUs)).toBe(expected);
  });
});
