// Counters of several processes, told and summed.
import { describe, expect, test } from '@jest/globals';
import { StatisticsRegistry } from './statistics.js';
import { ClusterCounters, CountersReport } from './version-counters.js';

const EXECUTION = { rows: 2, reason: 'full', computeInputNs: 1, computeInferNs: 10, computeOutputNs: 2 } as const;

function scheduler(executions: number): StatisticsRegistry {
  const statistics = new StatisticsRegistry();
  const model = statistics.forVersion('m', '1');
  for (let i = 0; i < executions; i++) {
    model.recordExecution(EXECUTION, 1000 + i);
    model.recordStages({ queueNs: 5, computeInputNs: 1, computeInferNs: 10, computeOutputNs: 2 });
  }
  return statistics;
}

describe('counters', () => {
  test('are told when they change, and whole', () => {
    const statistics = scheduler(2);
    statistics.forVersion('idle', '1');
    const report = new CountersReport(statistics);
    expect(report.changed().map(({ model, executionCount }) => [model, executionCount])).toEqual([['m', 2]]);
    expect(report.changed()).toEqual([]);
    statistics.forVersion('m', '1').recordExecution(EXECUTION, 9);
    expect(report.changed().map(({ executionCount }) => executionCount)).toEqual([3]);
    expect(report.all().map(({ executionCount }) => executionCount)).toEqual([3]);
  });

  test('of gateways and schedulers add up, however often they are told', () => {
    const own = new StatisticsRegistry();
    own.forVersion('m', '1').recordSuccess(100);
    const cluster = new ClusterCounters(own);
    const other = new StatisticsRegistry();
    other.forVersion('m', '1').recordSuccess(50);
    other.forVersion('m', '1').recordFailure('OTHER', 7, 'x');
    for (let i = 0; i < 2; i++) {
      cluster.note('s1', new CountersReport(scheduler(2)).all());
      cluster.note('s2', new CountersReport(scheduler(3)).all());
      cluster.note('g2', new CountersReport(other).all());
    }
    const sum = cluster.find('m', '1')!;
    expect([sum.success, sum.fail, sum.queue]).toEqual([
      { count: 2, ns: 150 },
      { count: 1, ns: 7 },
      { count: 5, ns: 25 },
    ]);
    expect([sum.executionCount, sum.inferenceCount, sum.lastInferenceMs]).toEqual([5, 10, 1002]);
    expect(sum.batchSizes.get(2)?.computeInfer).toEqual({ count: 5, ns: 50 });
    cluster.remove('m', '1');
    expect(cluster.find('m', '1')?.executionCount).toBe(0);
    expect(cluster.find('unknown', '1')).toBeUndefined();
  });
});
