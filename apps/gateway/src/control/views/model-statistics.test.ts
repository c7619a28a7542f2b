import { describe, expect, it } from '@jest/globals';
import { StatisticsRegistry } from '@paceline/telemetry';
import { catalogOf, fakeModel } from '../../testing/fake-lane.js';
import { modelStatistics } from './model-statistics.js';

const catalog = catalogOf(fakeModel({ name: 'b', inputs: [] }), fakeModel({ name: 'a', inputs: [] }));
const zero = { count: 0, ns: 0 };

describe('model statistics', () => {
  it('are zeros for a model never used, in the fields and the order of Triton', () => {
    expect(JSON.stringify(modelStatistics(catalog, new StatisticsRegistry(), 'a', ''))).toBe(
      JSON.stringify([
        {
          name: 'a',
          version: '1',
          last_inference: 0,
          inference_count: 0,
          execution_count: 0,
          inference_stats: {
            success: zero,
            fail: zero,
            queue: zero,
            compute_input: zero,
            compute_infer: zero,
            compute_output: zero,
            cache_hit: zero,
            cache_miss: zero,
          },
          response_stats: {},
          batch_stats: [],
          memory_usage: [],
        },
      ]),
    );
  });

  it('say what the instances of a model take, once somebody has looked', () => {
    const statistics = new StatisticsRegistry();
    statistics.instanceMemory = () => [
      { model: 'a', version: '1', instance: 'a_0_0', residentBytes: 4096.4 },
      { model: 'a', version: '1', instance: 'a_0_1', residentBytes: 8192 },
      { model: 'a', version: '2', instance: 'a_0_0', residentBytes: 1 },
    ];
    expect(modelStatistics(catalog, statistics, '', '').map(({ name, memory_usage }) => [name, memory_usage])).toEqual([
      ['a', [{ type: 'CPU', id: 0, byte_size: 12288 }]],
      ['b', []],
    ]);
  });

  it('show what the lane learned, and the objective of a model that has one, in a member of their own', () => {
    const statistics = new StatisticsRegistry();
    const sizes = [{ batchSize: 4, p50Us: 1000.4, worstUs: 2000, rowsPerSecond: 3999.96 }];
    const profile = () => ({ sizes, peakRows: undefined });
    statistics.forVersion('a', '1').batching = { profile, objective: { objectiveMs: 40, attained: 3, missed: 2, shed: 1 } };
    statistics.forVersion('b', '1').batching = { profile, objective: undefined };
    const measured = { profile: [{ batch_size: 4, p50_us: 1000, worst_us: 2000, rows_per_second: 4000 }], peak: null };
    expect(modelStatistics(catalog, statistics, '', '').map(({ paceline }) => paceline)).toEqual([
      { ...measured, objective_ms: 40, attained: 3, missed: 2, shed: 1 },
      measured,
    ]);
  });

  it('are whole numbers, batches by size', () => {
    const statistics = new StatisticsRegistry();
    const s = statistics.forVersion('a', '1');
    for (const rows of [8, 2]) {
      s.recordExecution({ rows, reason: 'full', computeInputNs: 1.4, computeInferNs: 20, computeOutputNs: 3 }, 1796049414822.4);
    }
    s.recordStages({ queueNs: 5, computeInputNs: 1.4, computeInferNs: 20, computeOutputNs: 3 });
    s.recordSuccess(100.6);
    s.recordFailure('BACKEND', 7, 'model_failed');
    const [view] = modelStatistics(catalog, statistics, 'a', '1');
    expect(view).toMatchObject({
      last_inference: 1796049414822,
      inference_count: 10,
      execution_count: 2,
      inference_stats: {
        success: { count: 1, ns: 101 },
        fail: { count: 1, ns: 7 },
        queue: { count: 1, ns: 5 },
        compute_input: { count: 1, ns: 1 },
      },
    });
    const stage = (ns: number): object => ({ count: 1, ns });
    expect(view!.batch_stats).toEqual(
      [2, 8].map((size) => ({ batch_size: size, compute_input: stage(1), compute_infer: stage(20), compute_output: stage(3) })),
    );
  });

  it('are listed by name where no model is asked for', () => {
    expect(modelStatistics(catalog, new StatisticsRegistry(), '', '').map(({ name }) => name)).toEqual(['a', 'b']);
  });

  it.each([
    ['nosuch', '', "requested model 'nosuch' is not available"],
    ['a', '7', "requested model version is not available for model 'a'"],
  ])('of %s version %j are an error', (name, version, text) => {
    expect(() => modelStatistics(catalog, new StatisticsRegistry(), name, version)).toThrow(text);
  });
});
