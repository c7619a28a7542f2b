import { describe, expect, test } from '@jest/globals';
import { Backoff } from './backoff.js';
import { ExecuteLimit } from './execute-limit.js';
import { MemoryGrowth } from './memory-growth.js';

const SECOND = 1_000_000;
const MIB = 1024 * 1024;

describe('execute limit', () => {
  const limits = { firstRunLimitUs: 120 * SECOND, executeLimitUs: 30 * SECOND, learnedFloorUs: SECOND };
  const after = (runs: number, us: number, bytes = 100): ExecuteLimit => {
    const limit = new ExecuteLimit(limits);
    for (let i = 0; i < runs; i++) limit.record(us, bytes);
    return limit;
  };

  test('the first run has its own, then the configured one holds until enough was seen', () => {
    expect(after(0, 0).limitUs(100)).toBe(120 * SECOND);
    expect(after(1, 5).limitUs(100)).toBe(30 * SECOND);
    expect(after(49, 5).limitUs(100)).toBe(30 * SECOND);
  });

  test('then twenty times the worst, within its bounds', () => {
    expect(after(50, 5).limitUs(100)).toBe(SECOND);
    expect(after(50, 200_000).limitUs(100)).toBe(4 * SECOND);
    expect(after(50, 20 * SECOND).limitUs(100)).toBe(30 * SECOND);
  });

  test('each run that outlives a learned limit multiplies it, up to the configured one', () => {
    const limit = after(60, 5);
    expect(limit.limitUs(100)).toBe(SECOND);
    limit.outlived(SECOND);
    expect(limit.limitUs(100)).toBe(4 * SECOND);
    limit.outlived(4 * SECOND);
    expect(limit.limitUs(100)).toBe(16 * SECOND);
    for (let i = 0; i < 60; i++) limit.record(5, 100);
    expect(limit.limitUs(100)).toBe(16 * SECOND);
    limit.outlived(16 * SECOND);
    expect(limit.limitUs(100)).toBe(30 * SECOND);
  });

  test('a run that outlives the configured limit teaches nothing', () => {
    const limit = after(60, 2 * SECOND);
    limit.outlived(30 * SECOND);
    expect(limit.limitUs(100)).toBe(30 * SECOND);
    expect(limit.worstUs).toBe(2 * SECOND);
  });

  test('a batch larger than any before gets more, a smaller one not less', () => {
    expect(after(50, 200_000).limitUs(200)).toBe(8 * SECOND);
    expect(after(50, 200_000).limitUs(1)).toBe(4 * SECOND);
  });
});

test('back-off doubles to ten seconds and is forgiven after some seconds in service', () => {
  const backoff = new Backoff();
  const delays = Array.from({ length: 9 }, () => backoff.down(0) / 1000);
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
  backoff.up(0);
  expect(backoff.down(4 * SECOND)).toBe(10 * SECOND);
  backoff.up(60 * SECOND);
  expect(backoff.down(65 * SECOND)).toBe(100_000);
});

test('a host is replaced when it doubled and grew by a quarter of a gigabyte, counted from a settled state', () => {
  const growth = new MemoryGrowth({ settleUs: 30 * SECOND, allowedGrowthBytes: 256 * MIB }, 0);
  expect(growth.observe(5000 * MIB, 29 * SECOND)).toBe(false);
  expect(growth.observe(100 * MIB, 30 * SECOND)).toBe(false);
  expect(growth.observe(456 * MIB, 40 * SECOND)).toBe(false);
  expect(growth.observe(457 * MIB, 50 * SECOND)).toBe(true);
  growth.reset(50 * SECOND);
  expect(growth.observe(5000 * MIB, 79 * SECOND)).toBe(false);
  expect(growth.observe(457 * MIB, 80 * SECOND)).toBe(false);
});
