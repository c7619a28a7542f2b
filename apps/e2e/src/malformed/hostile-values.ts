/** Values that break servers: kept in one place for every family that puts a value where another was meant. */
import type { Draw } from '../support/draw.js';

const DEEP = (depth: number, leaf: unknown): unknown => {
  let value = leaf;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
};

/** For any place in a JSON document. */
export function hostileValue(draw: Draw): unknown {
  return draw.pick<() => unknown>([
    () => null,
    () => true,
    () => '',
    () => -1,
    () => 0,
    () => 0.5,
    () => 1e308,
    () => Number.MAX_SAFE_INTEGER + 2,
    () => -(2 ** 63),
    () => ({}),
    () => [],
    () => [[]],
    () => ({ a: { b: { c: [] } } }),
    () => '\u0000',
    () => '../../../../etc/passwd',
    () => '__proto__',
    () => 'constructor',
    () => '"\\\r\n\t',
    () => '\ud800',
    () => 'x'.repeat(draw.int(1000, 20_000)),
    () => DEEP(draw.int(10, 200), 1),
    () => Array.from({ length: draw.int(100, 3000) }, () => 1),
  ])();
}

/** Shapes that overflow, lie or do not end. */
export function hostileShape(draw: Draw): unknown[] {
  const any = (): number => draw.pick([-1, 0, 1, 2, 4, 7, 65, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 62, -(2 ** 31)]);
  return draw.pick<() => unknown[]>([
    () => [],
    () => [-1, 4],
    () => [1, -4],
    () => [-2, -2],
    () => [0, 4],
    () => [1, 0],
    () => [2 ** 31, 2 ** 31],
    () => [2 ** 32, 2 ** 32],
    () => [2 ** 53, 2],
    () => [2 ** 62, 4],
    () => [1e300, 1e300],
    () => [1.5, 4],
    () => ['1', '4'],
    () => [null, 4],
    () => [[1], 4],
    () => [true, 4],
    () => [9, 4],
    () => Array.from({ length: draw.int(3, 400) }, () => 1),
    () => Array.from({ length: draw.int(1, 9) }, any),
    () => Array.from({ length: 100_000 }, () => 1),
  ])();
}

export const DATATYPES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'INT8',
  'INT32',
  'INT64',
  'FP16',
  'BF16',
  'FP32',
  'FP64',
  'BYTES',
  'fp32',
  'FLOAT',
  'TYPE_FP32',
  'FP33',
  '',
  'constructor',
  '__proto__',
  'toString',
] as const;

/** Names of models and versions that do not exist or must never become a path. */
export const MODEL_NAMES = [
  'no_such_model',
  '..',
  '.',
  '%2e%2e',
  '..%2f..%2fetc%2fpasswd',
  'floats%00',
  'floats%',
  'floats%zz',
  'FLOATS',
  '__proto__',
  'constructor',
  'a'.repeat(9000),
  '%F0%9F%9A%80',
] as const;
export const VERSIONS = ['0', '-1', '2', '99999999999999999999', '1.0', '01', 'latest', '%31', '', '1e0'] as const;
