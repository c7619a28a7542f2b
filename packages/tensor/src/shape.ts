/** Shape arithmetic. Invariant: a count that would not be an exact integer is an error, never a rounded number. */
import { elementSize, type DataType } from './datatype.js';
import { TensorFormatError } from './errors.js';

/**
 * Product of `shape`, 1 for a scalar.
 * @param shape dimensions >= 0
 * @throws TensorFormatError for a negative or fractional dimension, or a product above 2^53 - 1
 */
export function elementCount(shape: readonly number[]): number {
  let count = 1;
  let zero = false;
  for (let i = 0; i < shape.length; i++) {
    const dim = shape[i] as number;
    if (!(dim >= 0) || !Number.isSafeInteger(dim)) {
      throw new TensorFormatError(`shape ${formatShape(shape)} contains one or more invalid dimensions`);
    }
    if (dim === 0) zero = true;
    else count *= dim;
    if (count > Number.MAX_SAFE_INTEGER) throw new TensorFormatError(`shape ${formatShape(shape)} has too many elements`);
  }
  return zero ? 0 : count;
}

/**
 * Bytes of a tensor of a fixed-size type.
 * @throws TensorFormatError as {@link elementCount}, and when the byte size exceeds 2^53 - 1; RangeError for BYTES
 */
export function byteSize(datatype: DataType, shape: readonly number[]): number {
  const size = elementSize(datatype);
  if (size === 0) throw new RangeError('BYTES has no fixed byte size');
  const bytes = elementCount(shape) * size;
  if (bytes > Number.MAX_SAFE_INTEGER) throw new TensorFormatError(`shape ${formatShape(shape)} has too many bytes`);
  return bytes;
}

/** As Triton prints it: `[1,-1,3]`. */
export function formatShape(shape: readonly number[]): string {
  return `[${shape.join(',')}]`;
}
