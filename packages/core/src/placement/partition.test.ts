// Partitions: stable across processes and releases, evenly spread, shared by what shares a GPU.
import { describe, expect, test } from '@jest/globals';
import { assignPartitions, partitionOf, type PartitionMember } from './partition.js';

const member = (model: string, ...gpus: string[]): PartitionMember => ({ model, version: '1', gpus });

describe('partitionOf', () => {
  test('is the same in every process and release', () => {
    expect([partitionOf('resnet', '1', 16), partitionOf('resnet', '2', 16), partitionOf('größe', '1', 16)]).toEqual([9, 15, 10]);
  });

  test('spreads models and versions evenly', () => {
    for (const partitions of [4, 16, 64]) {
      const counts = new Array<number>(partitions).fill(0);
      for (let i = 0; i < 100 * partitions; i++) {
        const partition = partitionOf(`model_${i >> 1}`, String(1 + (i & 1)), partitions);
        counts[partition] = (counts[partition] ?? 0) + 1;
      }
      expect(Math.min(...counts)).toBeGreaterThan(60);
      expect(Math.max(...counts)).toBeLessThan(145);
    }
  });
});

describe('assignPartitions', () => {
  test('leaves models without a GPU where their hash puts them', () => {
    const assigned = assignPartitions([member('a'), member('b')], 16);
    expect(assigned.get('1/a')).toBe(partitionOf('a', '1', 16));
    expect(assigned.get('1/b')).toBe(partitionOf('b', '1', 16));
  });

  test('joins what shares a GPU, directly or through another model, in any order', () => {
    const members = [member('a', 'w/gpu:0'), member('b', 'w/gpu:0', 'v/gpu:1'), member('c', 'v/gpu:1'), member('d', 'v/gpu:0')];
    const assigned = assignPartitions(members, 1024);
    expect(new Set([assigned.get('1/a'), assigned.get('1/b'), assigned.get('1/c')]).size).toBe(1);
    expect(assigned.get('1/d')).toBe(partitionOf('d', '1', 1024));
    const bridge = assignPartitions([member('a', 'x'), member('b', 'y'), member('z', 'x', 'y')], 1024);
    expect(new Set(bridge.values()).size).toBe(1);
    expect([...assignPartitions(members.toReversed(), 1024)].sort()).toEqual([...assigned].sort());
  });

  test('a newcomer joins the group where it is', () => {
    const before = assignPartitions([member('m', 'g'), member('n', 'g')], 1024);
    const after = assignPartitions([member('a', 'g'), member('m', 'g'), member('n', 'g')], 1024, before);
    expect(after.get('1/m')).toBe(before.get('1/m'));
    expect(after.get('1/a')).toBe(before.get('1/m'));
  });
});
