// Shares of partitions: quotas that add up, and moves that end.
import { expect, test } from '@jest/globals';
import { shareOf, shareQuota } from './partition-share.js';

const PARTITIONS = 16;

test('the quotas of all members add up to all partitions and differ by one at most', () => {
  for (let members = 1; members <= 20; members++) {
    const quotas = Array.from({ length: members }, (_, rank) => shareQuota(rank, members, PARTITIONS));
    expect(quotas.reduce((sum, quota) => sum + quota, 0)).toBe(PARTITIONS);
    expect(Math.max(...quotas) - Math.min(...quotas)).toBeLessThanOrEqual(1);
  }
});

test('who is alone tries for everything, whether it is named among the members or not', () => {
  const all = Array.from({ length: 4 }, (_, i) => i);
  expect(shareOf({ self: 'a', schedulers: [], partitions: 4, held: [] })).toEqual({ candidates: all, wanted: 4, surplus: undefined });
  expect(shareOf({ self: 'a', schedulers: ['a'], partitions: 4, held: [1] })).toEqual({
    candidates: [0, 2, 3],
    wanted: 3,
    surplus: undefined,
  });
});

test('members that start together prefer different partitions', () => {
  const first = (self: string) => shareOf({ self, schedulers: ['a', 'b', 'c'], partitions: 6, held: [] }).candidates.slice(0, 2);
  expect([first('a'), first('b'), first('c')]).toEqual([
    [0, 3],
    [1, 4],
    [2, 5],
  ]);
});

test('beyond its quota it gives up one that another prefers, and tries for none', () => {
  expect(shareOf({ self: 'a', schedulers: ['a', 'b'], partitions: 4, held: [0, 1, 2, 3] })).toEqual({
    candidates: [],
    wanted: 0,
    surplus: 3,
  });
  expect(shareOf({ self: 'a', schedulers: ['a', 'b'], partitions: 4, held: [0, 2] })).toEqual({
    candidates: [],
    wanted: 0,
    surplus: undefined,
  });
});
