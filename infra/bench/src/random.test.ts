// Send times are what makes an open-loop figure honest: their rate, their spread and their repeatability.
import { describe, expect, test } from '@jest/globals';
import { poissonTimesMs } from './random.js';

describe('Poisson send times', () => {
  const times = poissonTimesMs(2000, 10_000, 7);
  const gaps = Array.from(times.subarray(1), (at, i) => at - (times[i] ?? 0));
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;

  test('ascend, stay inside the duration and keep the rate', () => {
    expect(gaps.every((gap) => gap >= 0)).toBe(true);
    expect(times.at(-1)).toBeLessThan(10_000);
    expect(times.length).toBeGreaterThan(19_000);
    expect(times.length).toBeLessThan(21_000);
  });

  test('have gaps as uneven as an exponential distribution: deviation equals mean', () => {
    const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
    expect(deviation / mean).toBeCloseTo(1, 1);
  });

  test('follow from the seed', () => {
    expect(poissonTimesMs(2000, 10_000, 7)).toEqual(times);
    expect(poissonTimesMs(2000, 10_000, 8)).not.toEqual(times);
  });
});
