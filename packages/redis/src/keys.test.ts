// Where a cluster puts our keys, by its own function of a key.
import { createRequire } from 'node:module';
import { describe, expect, test } from '@jest/globals';
import { RedisKeys } from './keys.js';

const requireHere = createRequire(import.meta.url);
// The one that the client library itself decides with.
const slotOf = createRequire(requireHere.resolve('ioredis'))('cluster-key-slot') as (key: string) => number;
const SLOTS = 16_384;
const names = (keys: object): string[] => Object.values<string>({ ...keys });

describe('RedisKeys', () => {
  const keys = new RedisKeys('paceline');

  test('knows the slot function', () => {
    // From the specification of Redis Cluster.
    expect(slotOf('123456789')).toBe(0x31c3);
    expect(slotOf('{user1000}.following')).toBe(slotOf('{user1000}.followers'));
  });

  test('what one script touches lies in one slot', () => {
    const groups = [
      ...Array.from({ length: 16 }, (_, partition) => names(keys.partition(partition))),
      names(keys.lease('placement')),
      names(keys.members),
    ];
    for (const group of groups) expect(new Set(group.map(slotOf)).size).toBe(1);
  });

  test('partitions have slots of their own, and a cluster of three spreads the default sixteen', () => {
    const slots = Array.from({ length: 16 }, (_, partition) => slotOf(keys.partition(partition).in));
    expect(new Set(slots).size).toBe(16);
    const perNode = [0, 1, 2].map((node) => slots.filter((slot) => Math.floor((slot * 3) / SLOTS) === node).length);
    for (const count of perNode) expect(count).toBeGreaterThanOrEqual(3);
  });

  test('a partition and its lease are the same record, and no two kinds share a key', () => {
    expect(keys.partition(3)).toMatchObject(keys.lease('p3'));
    const all = [...names(keys.partition(0)), ...names(keys.lease('placement')), ...names(keys.members), keys.desired];
    expect(new Set(all).size).toBe(all.length);
  });

  test.each(['', 'a{b', 'a b', 'x'.repeat(65)])('refuses the prefix %j', (prefix) => {
    expect(() => new RedisKeys(prefix)).toThrow('1 to 64 letters');
  });
});
