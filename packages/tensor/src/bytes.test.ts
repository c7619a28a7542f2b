/** The BYTES layout: round trip, and every way a blob can be cut. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeBytes, encodeBytes, inspectBytes, TensorFormatError } from './index.js';

describe('BYTES', () => {
  test('decode undoes encode', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 20 })), (elements) => {
        expect(decodeBytes(encodeBytes(elements)).map((e) => [...e])).toEqual(elements.map((e) => [...e]));
      }),
    );
  });

  test('strings become UTF-8 behind a little-endian length', () => {
    expect([...encodeBytes(['é', ''])]).toEqual([2, 0, 0, 0, 0xc3, 0xa9, 0, 0, 0, 0]);
  });

  test('a blob cut at any place is never taken for a shorter whole one', () => {
    const blob = encodeBytes(['abc', 'de']);
    const kinds = Array.from({ length: blob.length + 1 }, (_, n) => inspectBytes(blob.subarray(0, n)).kind);
    expect(kinds.map((k) => k.replace('cut_', ''))).toEqual([
      'complete',
      'length',
      'length',
      'length',
      'element',
      'element',
      'element',
      'complete',
      'length',
      'length',
      'length',
      'element',
      'element',
      'complete',
    ]);
  });

  test('a length of 2^32 - 1 is reported, not followed', () => {
    expect(inspectBytes(new Uint8Array([255, 255, 255, 255, 1]))).toEqual({
      kind: 'cut_element',
      elements: 1,
      expectedBytes: 4294967295,
      leftBytes: 1,
    });
    expect(() => decodeBytes(new Uint8Array([9, 0, 0, 0]))).toThrow(TensorFormatError);
  });
});
