/** The best classes of an output: their order, their texts, and what has no order. */
import { describe, expect, test } from '@jest/globals';
import type { Tensor } from '@paceline/tensor';
import { classify } from './index.js';

describe('classification', () => {
  const strings = (t: Tensor): string[] => {
    const out: string[] = [];
    for (let at = 0; at < t.data.length;) {
      const n = new DataView(t.data.buffer, t.data.byteOffset).getUint32(at, true);
      out.push(new TextDecoder().decode(t.data.subarray(at + 4, at + 4 + n)));
      at += 4 + n;
    }
    return out;
  };
  const fp32 = (values: number[], shape: number[]): Tensor => ({
    name: 'O',
    datatype: 'FP32',
    shape,
    data: new Uint8Array(new Float32Array(values).buffer),
  });
  const LABELS = ['cat', 'dog', 'bird', 'fish', 'horse'];

  test('each row is ranked on its own, with labels', () => {
    const result = classify(fp32([0.5, 0.25, 2.5, 1, -3, 9, 8, 7, 6, 5], [2, 5]), 2, true, LABELS);
    expect(result).toMatchObject({ datatype: 'BYTES', shape: [2, 2] });
    expect(strings(result)).toEqual(['2.500000:2:bird', '1.000000:3:fish', '9.000000:0:cat', '8.000000:1:dog']);
  });

  test('K is clipped, ties keep their order, NaN comes last', () => {
    const result = classify(fp32([1, NaN, 1, Infinity, 1e22], [5]), 9, false, undefined);
    expect(result.shape).toEqual([5]);
    expect(strings(result)).toEqual(['inf:3', '9999999778196308361216.000000:4', '1.000000:0', '1.000000:2', 'nan:1']);
  });

  test('64-bit integers are ranked and printed exactly', () => {
    const data = new Uint8Array(new BigInt64Array([2n ** 53n, 2n ** 53n + 1n]).buffer);
    expect(strings(classify({ name: 'O', datatype: 'INT64', shape: [2], data }, 2, false, undefined))).toEqual([
      '9007199254740993:1',
      '9007199254740992:0',
    ]);
  });

  test('scores inside a larger buffer are read at their place', () => {
    const buffer = Buffer.alloc(17, 0xff);
    buffer.set(new Uint8Array(new Float32Array([1, 3, 2]).buffer), 5);
    expect(strings(classify({ name: 'O', datatype: 'FP32', shape: [3], data: buffer.subarray(5) }, 1, false, undefined))).toEqual([
      '3.000000:1',
    ]);
  });

  test('types without an order are refused', () => {
    expect(() => classify({ name: 'O', datatype: 'FP16', shape: [1], data: new Uint8Array(2) }, 1, false, undefined)).toThrow(
      "unsupported type 'FP16'",
    );
  });
});
