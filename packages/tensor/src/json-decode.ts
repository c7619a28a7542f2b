/**
 * The JSON `data` of one input → canonical bytes. Invariant: the bytes returned hold exactly the shape's elements, and no
 * integer was rounded or wrapped; whatever does not fit is refused with its flat index and value.
 */
import { encodeBytes } from './bytes.js';
import type { DataType } from './datatype.js';
import { InexactIntegerError, TensorFormatError } from './errors.js';
import { toBFloat16Bits, toFloat16Bits } from './float16.js';
import { elementCount, formatShape } from './shape.js';

/** Nesting of `data` that is followed; deeper arrays are refused. */
export const MAX_DATA_DEPTH = 100;

const INTEGER_RANGE = {
  UINT8: [0, 0xff],
  UINT16: [0, 0xffff],
  UINT32: [0, 0xffffffff],
  INT8: [-0x80, 0x7f],
  INT16: [-0x8000, 0x7fff],
  INT32: [-0x80000000, 0x7fffffff],
} as const;

const SIGNED_64 = [-(2n ** 63n), 2n ** 63n - 1n] as const;
const UNSIGNED_64 = [0n, 2n ** 64n - 1n] as const;

function show(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 40 ? `${text.slice(0, 37)}...` : text;
}

function wrongElement(expected: string, as: string, index: number, value: unknown, datatype: string): TensorFormatError {
  return new TensorFormatError(
    `attempt to access JSON non-${expected} as ${as} (element ${index} is ${show(value)}, expected ${datatype})`,
  );
}

function countError(shape: readonly number[], expected: number, found: number): TensorFormatError {
  return new TensorFormatError(
    `Shape does not match true shape of 'data' field (shape ${formatShape(shape)} has ${expected} elements, 'data' has ${found})`,
  );
}

function flattenInto(value: readonly unknown[], out: unknown[], depth: number): void {
  if (depth > MAX_DATA_DEPTH) throw new TensorFormatError(`JSON nesting depth exceeds maximum allowed limit (${MAX_DATA_DEPTH})`);
  for (const item of value) {
    if (Array.isArray(item)) flattenInto(item, out, depth + 1);
    else out.push(item);
  }
}

/** The elements of `data` in row-major order; the same array where it is flat already. */
function flatten(data: readonly unknown[]): readonly unknown[] {
  for (let i = 0; i < data.length; i++) {
    if (Array.isArray(data[i])) {
      const out: unknown[] = [];
      flattenInto(data, out, 1);
      return out;
    }
  }
  return data;
}

/** "NaN", "Infinity" and "-Infinity" stand for what JSON numbers cannot say; a number too big for a double is refused. */
function floatOf(value: unknown, index: number, datatype: string): number {
  if (typeof value === 'number') {
    if (value - value === 0) return value;
    throw new TensorFormatError(`Number too big to be stored in double. (element ${index}, expected ${datatype})`);
  } else if (typeof value === 'bigint') {
    return Number(value);
  } else if (value === 'NaN') {
    return NaN;
  } else if (value === 'Infinity') {
    return Infinity;
  } else if (value === '-Infinity') {
    return -Infinity;
  }
  throw wrongElement('number', 'double', index, value, datatype);
}

function decodeFloats(datatype: 'FP16' | 'BF16' | 'FP32' | 'FP64', items: readonly unknown[]): Uint8Array {
  const n = items.length;
  const out = datatype === 'FP32' ? new Float32Array(n) : datatype === 'FP64' ? new Float64Array(n) : new Uint16Array(n);
  const narrow = datatype === 'FP16' ? toFloat16Bits : datatype === 'BF16' ? toBFloat16Bits : undefined;
  for (let i = 0; i < n; i++) {
    const value = items[i];
    const number = typeof value === 'number' && value - value === 0 ? value : floatOf(value, i, datatype);
    out[i] = narrow ? narrow(number) : number;
  }
  return new Uint8Array(out.buffer);
}

function decodeIntegers(datatype: keyof typeof INTEGER_RANGE, items: readonly unknown[]): Uint8Array {
  const n = items.length;
  const [min, max] = INTEGER_RANGE[datatype];
  const size = max - min > 0xffff ? 4 : max - min > 0xff ? 2 : 1;
  // The low bytes of a value in range are its two's complement, signed or not.
  const out = size === 4 ? new Uint32Array(n) : size === 2 ? new Uint16Array(n) : new Uint8Array(n);
  const kind = min < 0 ? 'signed-integer' : 'unsigned-integer';
  for (let i = 0; i < n; i++) {
    const value = items[i];
    if (typeof value !== 'number' || !(value >= min && value <= max) || Math.trunc(value) !== value) {
      throw wrongElement(kind, kind, i, value, datatype);
    }
    out[i] = value;
  }
  return new Uint8Array(out.buffer);
}

function decodeWide(datatype: 'INT64' | 'UINT64', items: readonly unknown[], exact: boolean): Uint8Array {
  const [min, max] = datatype === 'INT64' ? SIGNED_64 : UNSIGNED_64;
  const kind = datatype === 'INT64' ? 'signed-integer' : 'unsigned-integer';
  const out = new BigInt64Array(items.length);
  for (let i = 0; i < items.length; i++) {
    const value = items[i];
    if (typeof value === 'number' && Number.isInteger(value)) {
      if (!exact && !Number.isSafeInteger(value)) throw new InexactIntegerError();
    } else if (typeof value !== 'bigint') {
      throw wrongElement(kind, kind, i, value, datatype);
    }
    const wide = BigInt(value);
    if (wide < min || wide > max) throw wrongElement(kind, kind, i, value, datatype);
    out[i] = wide;
  }
  return new Uint8Array(out.buffer);
}

function decodeBooleans(items: readonly unknown[]): Uint8Array {
  const out = new Uint8Array(items.length);
  for (let i = 0; i < items.length; i++) {
    const value = items[i];
    if (value === true) out[i] = 1;
    else if (value !== false) throw wrongElement('boolean', 'boolean', i, value, 'BOOL');
  }
  return out;
}

function decodeStrings(items: readonly unknown[]): Uint8Array {
  for (let i = 0; i < items.length; i++) {
    const value = items[i];
    if (typeof value !== 'string') throw wrongElement('string', 'string', i, value, 'BYTES');
    if (!value.isWellFormed()) throw new TensorFormatError(`The surrogate pair in string is invalid. (element ${i})`);
  }
  return encodeBytes(items as readonly string[]);
}

/**
 * @param data nested or flat array as JSON.parse or parseJsonExact gave it; nesting need not follow the shape
 * @param shape dimensions >= 0; the element count must equal its product
 * @param exact whether integers beyond 2^53 are BigInts in `data`
 * @returns fresh little-endian row-major bytes
 * @throws TensorFormatError naming the element; InexactIntegerError when `exact` is false and it matters
 */
export function decodeJsonData(datatype: DataType, shape: readonly number[], data: unknown, exact: boolean): Uint8Array {
  if (!Array.isArray(data)) throw new TensorFormatError('attempt to access JSON non-array as array');
  const items = flatten(data);
  const expected = elementCount(shape);
  if (items.length !== expected) throw countError(shape, expected, items.length);
  switch (datatype) {
    case 'BOOL':
      return decodeBooleans(items);
    case 'UINT8':
    case 'UINT16':
    case 'UINT32':
    case 'INT8':
    case 'INT16':
    case 'INT32':
      return decodeIntegers(datatype, items);
    case 'INT64':
    case 'UINT64':
      return decodeWide(datatype, items, exact);
    case 'FP16':
    case 'BF16':
    case 'FP32':
    case 'FP64':
      return decodeFloats(datatype, items);
    case 'BYTES':
      return decodeStrings(items);
  }
}
