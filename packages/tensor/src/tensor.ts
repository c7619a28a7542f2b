import type { DataType } from './datatype.js';

/**
 * A tensor in canonical form: row-major, little-endian, packed.
 * `data` is a view and is never modified by whoever receives it; it may lie in a larger request or reply buffer.
 */
export interface Tensor {
  readonly name: string;
  readonly datatype: DataType;
  /** Dimensions >= 0, outermost first; includes the batch dimension where the model batches. [] is a scalar. */
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}
