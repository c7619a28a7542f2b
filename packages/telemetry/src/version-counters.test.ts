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

  test('memory is told when it changes, also of a version that counted nothing, and is the last word of anybody', () => {
    const memory = new Map([['idle', 500]]);
    const statistics = scheduler(0);
    const report = new CountersReport(statistics, () => [...memory].map(([model, memoryBytes]) => ({ model, version: '1', memoryBytes })));
    const cluster = new ClusterCounters(new StatisticsRegistry());
    const shown = (): unknown[] => [...cluster.instanceMemory()].map(({ model, residentBytes }) => [model, residentBytes]);
    cluster.note('s1', report.changed());
    expect(shown()).toEqual([['idle', 500]]);
    expect(report.changed()).toEqual([]);
    expect(report.all().map(({ model, memoryBytes }) => [model, memoryBytes])).toEqual([['idle', 500]]);
    memory.set('idle', 700);
    memory.set('m', 1);
    cluster.note('s2', report.changed());
    expect(shown()).toEqual([
      ['idle', 700],
      ['m', 1],
    ]);
    memory.delete('m');
    cluster.note('s2', report.changed());
    expect(shown()).toEqual([['idle', 700]]);
    cluster.remove('idle', '1');
    expect(shown()).toEqual([]);
  });

  test('what the lane that ran last has learned is shown; requests count for all lanes with its objective', () => {
    const lane = (lastMs: number, objectiveMs: number, attained: number): StatisticsRegistry => {
      const statistics = new StatisticsRegistry();
      const model = statistics.forVersion('m', '1');
      model.recordExecution(EXECUTION, lastMs);
      const sizes = [{ batchSize: 2, p50Us: lastMs, worstUs: 20, rowsPerSecond: 3 }];
      model.batching = {
        profile: () => ({ sizes, peakRows: undefined }),
        objective: { objectiveMs, attained, missed: 1, shed: 0 },
      };
      return statistics;
    };
    const cluster = new ClusterCounters(new StatisticsRegistry());
    cluster.note('s1', new CountersReport(lane(300, 50, 7)).all());
    cluster.note('s2', new CountersReport(lane(200, 50, 5)).all());
    cluster.note('s3', new CountersReport(lane(100, 99, 1000)).all());
    const batching = cluster.find('m', '1')?.batching;
    expect(batching?.profile().sizes.map(({ p50Us }) => p50Us)).toEqual([300]);
    expect(batching?.objective).toEqual({ objectiveMs: 50, attained: 12, missed: 2, shed: 0 });
  });

  test('the sums hold over any number of processes that came and went', () => {
    const cluster = new ClusterCounters(new StatisticsRegistry());
    for (let i = 0; i < 1000; i++) cluster.note(`s${i}`, new CountersReport(scheduler(2)).all());
    expect(cluster.processes).toBeLessThanOrEqual(256);
    cluster.note('s999', new CountersReport(scheduler(3)).all());
    const sum = cluster.find('m', '1')!;
    expect([sum.executionCount, sum.queue.count, sum.batchSizes.get(2)?.computeInfer.count]).toEqual([2001, 2001, 2001]);
  });
});
