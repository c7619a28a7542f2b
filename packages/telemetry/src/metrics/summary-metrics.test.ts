/** Windowed quantiles: how exact they are, and that they forget. */
import { describe, expect, test } from '@jest/globals';
import { SMALLEST_QUANTILE_ERROR, WindowedQuantiles } from './summary-metrics.js';

const QUANTILES = [0.5, 0.9, 0.95, 0.99, 0.999];

/** Uniform numbers in [0, 1) from a seed. */
function* draws(seed: number): Generator<number, never> {
  for (let state = seed >>> 0; ;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

const read = (quantiles: WindowedQuantiles, nowMs: number): number[] =>
  [...quantiles.series('s', {}, QUANTILES, nowMs)].slice(0, QUANTILES.length).map(({ value }) => value);

describe('windowed quantiles', () => {
  test.each([1, 2, 3])('are within the smallest error that may be asked for, over all windows (seed %i)', (seed) => {
    const random = draws(seed);
    const quantiles = new WindowedQuantiles(0);
    const values: number[] = [];
    for (let i = 0; i < 50_000; i += 1) {
      // Latencies: a log-uniform body and a second mode far behind it.
      const value = Math.exp(6 * random.next().value) + (random.next().value < 0.05 ? 1000 : 0);
      values.push(value);
      quantiles.add(value, i);
    }
    values.sort((a, b) => a - b);
    const found = read(quantiles, 50_000);
    QUANTILES.forEach((wanted, i) => {
      const rank = values.filter((value) => value < found[i]!).length / values.length;
      expect(Math.abs(rank - wanted)).toBeLessThanOrEqual(SMALLEST_QUANTILE_ERROR);
    });
  });

  test('forget what is older than a minute, but not its sum and count', () => {
    const quantiles = new WindowedQuantiles(0);
    quantiles.add(10, 0);
    quantiles.add(30, 40_000);
    expect(read(quantiles, 40_001)[0]).toBe(20);
    expect(read(quantiles, 61_000)[0]).toBe(30);
    expect(read(quantiles, 200_000)[0]).toBeNaN();
    const [sum, count] = [...quantiles.series('s', {}, [], 200_000)];
    expect([sum, count]).toEqual([
      { metricName: 's_sum', labels: {}, value: 40 },
      { metricName: 's_count', labels: {}, value: 2 },
    ]);
  });

  test('have no value before the first observation', () => {
    expect(read(new WindowedQuantiles(0), 5)).toEqual(QUANTILES.map(() => NaN));
  });
});
