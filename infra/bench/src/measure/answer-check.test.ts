// The check of answers must fail on wrong ones.
import { describe, expect, test } from '@jest/globals';
import { assertClose } from './answer-check.js';

describe('assertClose', () => {
  test('passes within the tolerance', () => {
    assertClose([1.00005, 2], [1, 2], 1e-4, 'y');
  });

  test.each([
    ['a difference', [1.1, 2]],
    ['NaN', [Number.NaN, 2]],
    ['a missing number', [1]],
    ['a number too many', [1, 2, 3]],
  ])('fails on %s and says where', (_what, found) => {
    expect(() => {
      assertClose(found, [1, 2], 1e-4, 'tiny input 3');
    }).toThrow(/tiny input 3/);
  });
});
