/** The inputs of a run: seeded, so that the generator, the limit and the check of answers agree without talking. */
import type { BenchModel } from '../models/catalog.js';
import { seededRandom } from '../random.js';

export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

/** Row `index` of the pool: numbers in -1..1 with at most seven decimals, as a client's JSON would carry them. */
export function inputRow(model: BenchModel, index: number): Float64Array {
  const random = seededRandom(0x5eed + index);
  return Float64Array.from({ length: elementsOf(model.inputShape) }, () => Math.round((random() * 2 - 1) * 1e7) / 1e7);
}

/** `rows` rows of the pool one behind the other, from row `first` on, as the model takes them. */
export function inputBatch(model: BenchModel, first: number, rows: number): Float32Array {
  const elements = elementsOf(model.inputShape);
  const batch = new Float32Array(elements * rows);
  for (let row = 0; row < rows; row++) batch.set(inputRow(model, (first + row) % model.poolSize), row * elements);
  return batch;
}

/** The raw little-endian bytes of FP32 values. */
export function rawBytes(values: Float32Array): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}
