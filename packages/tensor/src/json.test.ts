/** JSON in and out for every type: exactness, ranges, Triton's number format, and round trips. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeJsonData, encodeJsonData, InexactIntegerError, parseJsonExact, type DataType } from './index.js';

function bytesOf(datatype: DataType, text: string, count: number): Uint8Array {
  return decodeJsonData(datatype, [count], parseJsonExact(text), true);
}

const RANGES: readonly (readonly [DataType, bigint, bigint])[] = [
  ['UINT8', 0n, 255n],
  ['UINT16', 0n, 65535n],
  ['UINT32', 0n, 4294967295n],
  ['UINT64', 0n, 18446744073709551615n],
  ['INT8', -128n, 127n],
  ['INT16', -32768n, 32767n],
  ['INT32', -2147483648n, 2147483647n],
  ['INT64', -9223372036854775808n, 9223372036854775807n],
];

describe.each(RANGES)('%s', (datatype, min, max) => {
  test('text → bytes → text is the identity over the whole range', () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min, max }), { minLength: 1, maxLength: 20 }), (values) => {
        const text = `[${values.join(',')}]`;
        expect(encodeJsonData(datatype, bytesOf(datatype, text, values.length))).toBe(text);
      }),
    );
    expect(encodeJsonData(datatype, bytesOf(datatype, `[${min},${max}]`, 2))).toBe(`[${min},${max}]`);
  });

  test('one beyond either end is refused by index and value', () => {
    for (const bad of [min - 1n, max + 1n]) {
      expect(() => bytesOf(datatype, `[0,${bad}]`, 2)).toThrow(`element 1 is ${bad}, expected ${datatype}`);
    }
    for (const bad of ['1.5', '"1"', 'true', 'null', '{}']) expect(() => bytesOf(datatype, `[${bad}]`, 1)).toThrow('element 0 is');
  });
});

describe('64-bit integers parsed as doubles', () => {
  test('are sent back for an exact parse only where digits may be lost', () => {
    expect(() => decodeJsonData('INT64', [1], JSON.parse('[9007199254740993]'), false)).toThrow(InexactIntegerError);
    expect(() => decodeJsonData('UINT64', [1], [2 ** 53], false)).toThrow(InexactIntegerError);
    expect(encodeJsonData('INT64', decodeJsonData('INT64', [2], [9007199254740991, -9007199254740991], false))).toBe(
      '[9007199254740991,-9007199254740991]',
    );
  });

  test('an exponent is an integer too', () => {
    expect(encodeJsonData('INT64', bytesOf('INT64', '[1e18,-0]', 2))).toBe('[1000000000000000000,0]');
    expect(() => bytesOf('INT64', '[1e19]', 1)).toThrow('element 0 is 10000000000000000000');
  });
});

describe('floats', () => {
  test.each([
    ['FP32', '[0.1,-1.5,3.4028234e+38,1e-45]', '[0.10000000149011612,-1.5,3.4028234663852886e38,1.401298464324817e-45]'],
    ['FP64', '[0.1,-1.5,1.7976931348623157e+308,5e-324]', '[0.1,-1.5,1.7976931348623157e308,5e-324]'],
    ['FP64', '[0.1,1e22,123456789012345678,-0.0]', '[0.1,1e22,123456789012345680.0,-0.0]'],
    [
      'FP32',
      '[18446744073709551615,-9223372036854775808,100000,1e21]',
      '[18446744073709552000.0,-9223372036854776000.0,100000.0,1.0000000200408773e21]',
    ],
    ['FP32', '[0.3333333333,0.00001,123456.789,1e10]', '[0.3333333432674408,0.000009999999747378752,123456.7890625,10000000000.0]'],
    ['FP32', '["NaN","Infinity","-Infinity",1e39]', '["NaN","Infinity","-Infinity","Infinity"]'],
    ['FP16', '["NaN",0.1,65504,-1e9]', '["NaN",0.0999755859375,65504.0,"-Infinity"]'],
    ['BF16', '["NaN",0.1,3,-0]', '["NaN",0.10009765625,3.0,-0.0]'],
  ] as const)('%s %s', (datatype, input, output) => {
    expect(encodeJsonData(datatype, bytesOf(datatype, input, 4))).toBe(output);
  });

  test('what is written is read back to the same bytes', () => {
    for (const datatype of ['FP16', 'BF16', 'FP32', 'FP64'] as const) {
      fc.assert(
        fc.property(fc.array(fc.double({ noNaN: true }), { minLength: 1 }), (values) => {
          const named = values.map((v) => (Number.isFinite(v) ? v : v > 0 ? 'Infinity' : '-Infinity'));
          const bytes = decodeJsonData(datatype, [values.length], named, false);
          expect(decodeJsonData(datatype, [values.length], JSON.parse(encodeJsonData(datatype, bytes)), false)).toEqual(bytes);
        }),
      );
    }
  });

  test('a number that no double can hold is called that', () => {
    expect(() => bytesOf('FP32', '[0,1e400]', 2)).toThrow('Number too big to be stored in double. (element 1, expected FP32)');
  });

  test.each(['true', '"nan"', 'null'])('%s is refused', (bad) => {
    expect(() => bytesOf('FP32', `[${bad}]`, 1)).toThrow('attempt to access JSON non-number as double (element 0');
  });
});

describe('shape and nesting', () => {
  test('nested, flat and differently nested data are the same tensor', () => {
    const flat = decodeJsonData('INT32', [2, 3], [1, 2, 3, 4, 5, 6], false);
    expect(
      decodeJsonData(
        'INT32',
        [2, 3],
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        false,
      ),
    ).toEqual(flat);
    expect(decodeJsonData('INT32', [2, 3], [1, [2, [3]], 4, 5, 6], false)).toEqual(flat);
    expect(decodeJsonData('FP32', [2, 0], [[], []], false)).toHaveLength(0);
  });

  test('a wrong count names both counts', () => {
    expect(() => decodeJsonData('INT32', [1, 4], [1, 2, 3], false)).toThrow(
      "Shape does not match true shape of 'data' field (shape [1,4] has 4 elements, 'data' has 3)",
    );
    expect(() => decodeJsonData('INT32', [4294967296, 4294967296], [], false)).toThrow('too many elements');
  });

  test('nesting beyond the limit is refused before the stack ends', () => {
    expect(() => decodeJsonData('INT32', [1], JSON.parse('['.repeat(50_000) + '1' + ']'.repeat(50_000)), false)).toThrow(
      'nesting depth exceeds',
    );
  });
});

describe('BOOL and BYTES', () => {
  test('BOOL takes true and false only', () => {
    expect([...bytesOf('BOOL', '[true,false]', 2)]).toEqual([1, 0]);
    expect(encodeJsonData('BOOL', new Uint8Array([0, 1, 2, 255]))).toBe('[false,true,true,true]');
    for (const bad of ['0', '1', '"true"', 'null'])
      expect(() => bytesOf('BOOL', `[${bad}]`, 1)).toThrow('non-boolean as boolean (element 0');
  });

  test('any well-formed string survives; lone surrogates and foreign bytes are refused', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1 }), (strings) => {
        const text = JSON.stringify(strings);
        expect(JSON.parse(encodeJsonData('BYTES', bytesOf('BYTES', text, strings.length)))).toEqual(strings);
      }),
    );
    expect(() => bytesOf('BYTES', '["\\ud800"]', 1)).toThrow('surrogate pair in string is invalid. (element 0)');
    expect(() => encodeJsonData('BYTES', new Uint8Array([1, 0, 0, 0, 255]))).toThrow('element 0 is not valid UTF-8');
  });
});

test.each([
  ['Uint8Array', new Uint8Array(9)],
  ['Buffer', Buffer.alloc(9)],
])('data at an odd offset of a larger %s is read right', (_kind, odd) => {
  odd.set(new Uint8Array(new Float32Array([1.5, -2]).buffer), 1);
  expect(encodeJsonData('FP32', odd.subarray(1))).toBe('[1.5,-2.0]');
});
