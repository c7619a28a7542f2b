/** FP16 and BF16 against their definition: nearest representable value, ties to even, over every bit pattern. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fromBFloat16Bits, fromFloat16Bits, toBFloat16Bits, toFloat16Bits } from './index.js';

const FORMATS = [
  { name: 'FP16', decode: fromFloat16Bits, encode: toFloat16Bits, infinity: 0x7c00, nan: 0x7e00 },
  { name: 'BF16', decode: fromBFloat16Bits, encode: toBFloat16Bits, infinity: 0x7f80, nan: 0x7fc0 },
] as const;

describe.each(FORMATS)('$name', ({ decode, encode, infinity, nan }) => {
  test('every finite pattern and both infinities survive a round trip', () => {
    for (let bits = 0; bits <= infinity; bits++) {
      expect(encode(decode(bits))).toBe(bits);
      expect(encode(decode(bits | 0x8000))).toBe(bits | 0x8000);
    }
    expect(encode(NaN)).toBe(nan);
    expect(decode(nan)).toBeNaN();
  });

  test('halfway between neighbours goes to the even one, a hair beyond goes to the nearer', () => {
    for (let bits = 0; bits < infinity - 1; bits += 7) {
      const low = decode(bits);
      const high = decode(bits + 1);
      const middle = low + (high - low) / 2;
      expect(encode(middle)).toBe(bits % 2 === 0 ? bits : bits + 1);
      expect(encode(middle * (1 + 2 ** -50))).toBe(bits + 1);
      expect(encode(middle * (1 - 2 ** -50))).toBe(bits);
    }
  });

  test('no other representable value is nearer', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, min: -70000, max: 70000 }), (x) => {
        const bits = encode(x);
        if ((bits & 0x7fff) >= infinity) return;
        const error = Math.abs(decode(bits) - x);
        for (const other of [bits - 1, bits + 1])
          if ((other & 0x7fff) < infinity && other >= 0) expect(Math.abs(decode(other) - x)).toBeGreaterThanOrEqual(error);
      }),
    );
  });
});

test('overflow starts halfway above the largest value', () => {
  expect(toFloat16Bits(65519.99)).toBe(0x7bff);
  expect(toFloat16Bits(65520)).toBe(0x7c00);
  expect(toFloat16Bits(-1e300)).toBe(0xfc00);
});
