// Verdicts: by the median, in the right direction, and never "pass" for what was not measured.
import { describe, expect, test } from '@jest/globals';
import { isReached, ratios, spread, type Goal } from './figures.js';

const figure = (goal: Goal, values: number[]) => ({ scenario: 's', what: 'w', unit: '', goal, values });

describe('figures', () => {
  test('spread', () => {
    expect(spread([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
    expect(spread([4, 1, 2, 3]).median).toBe(2.5);
    expect(spread([]).median).toBeNaN();
  });

  test('one bad round does not decide', () => {
    expect(isReached(figure({ atLeast: 0.75 }, [0.8, 0.2, 0.76]))).toBe(true);
    expect(isReached(figure({ atLeast: 0.75 }, [0.7, 0.9, 0.74]))).toBe(false);
    expect(isReached(figure({ atMost: 2 }, [1, 9, 2]))).toBe(true);
    expect(isReached(figure({ atMost: 2 }, [2.1]))).toBe(false);
  });

  test('what was not measured is a miss', () => {
    expect(isReached(figure({ atMost: 2 }, []))).toBe(false);
    expect(isReached(figure({ atLeast: 0 }, [Number.NaN]))).toBe(false);
  });

  test('ratios pair the rounds', () => {
    expect(ratios([10, 30], [5, 10])).toEqual([2, 3]);
  });
});
