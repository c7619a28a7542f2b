// What is given back is used again, nothing else, and not more than so much.
import { describe, expect, test } from '@jest/globals';
import { BodyPool } from './body-pool.js';

describe('body pool', () => {
  test.each([
    [1, 65_536],
    [65_536, 65_536],
    [65_537, 131_072],
    [110_770, 131_072],
    [8_388_608, 8_388_608],
  ])('%i bytes lie in a buffer of %i', (bytes, size) => {
    expect(new BodyPool().take(bytes).length).toBe(size);
  });

  test('a buffer that was given back is the next of its size', () => {
    const pool = new BodyPool();
    const first = pool.take(100_000);
    const second = pool.take(100_000);
    expect(second).not.toBe(first);
    pool.give(first);
    expect(pool.take(70_000)).toBe(first);
    expect(pool.freeBytes).toBe(0);
  });

  test('larger ones are neither rounded nor kept', () => {
    const pool = new BodyPool();
    const large = pool.take(8_388_609);
    expect(large.length).toBe(8_388_609);
    pool.give(large);
    expect(pool.freeBytes).toBe(0);
  });

  test('keeps no more than 32 MiB, and nothing after it was cleared', () => {
    const pool = new BodyPool();
    const buffers = Array.from({ length: 5 }, () => pool.take(8_388_608));
    for (const buffer of buffers) pool.give(buffer);
    expect(pool.freeBytes).toBe(32 * 1024 * 1024);
    pool.clear();
    expect(pool.freeBytes).toBe(0);
    expect(buffers).not.toContain(pool.take(8_388_608));
  });
});
