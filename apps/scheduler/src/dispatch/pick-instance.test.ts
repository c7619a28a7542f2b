/** Which instance takes the next batch. */
import { expect, test } from '@jest/globals';
import { pickInstance } from './pick-instance.js';

const load = (name: string, batches: number, lastUsedUs: number, place = true) => ({
  name,
  batches,
  lastUsedUs,
  hasPlace: () => place,
});

test('the least recently used idle one', () => {
  expect(pickInstance([load('a', 1, 1), load('b', 0, 7), load('c', 0, 5)], false)?.name).toBe('c');
});

test('for a staged batch the one whose only batch was sent first', () => {
  expect(pickInstance([load('a', 1, 9), load('b', 2, 1), load('c', 1, 5), load('d', 0, 0)], true)?.name).toBe('c');
});

test('none when all are taken', () => {
  expect(pickInstance([load('a', 2, 1)], false)).toBeUndefined();
  expect(pickInstance([load('a', 2, 1)], true)).toBeUndefined();
});

test('none whose device is taken by others', () => {
  expect(pickInstance([load('a', 0, 1, false), load('b', 0, 2)], false)?.name).toBe('b');
});
