/**
 * The bytes of warmup tensors. Random data is a fixed sequence, so that a model that cannot take it fails at every load,
 * and it stays in the range that models take: floating point in [0, 1), integers 0 and 1, which are good indexes.
 */
import { elementSize, inspectBytes, toBFloat16Bits, toFloat16Bits, type DataType, type Tensor } from '@paceline/tensor';
import type { WarmupInputPlan } from './warmup.js';

/** Elements after which random data repeats: enough for any model, and copying them is cheaper than making more. */
const PERIOD = 16_384;

/**
 * @param rows see `WarmupPlan.rows`
 * @param file the bytes of one row in canonical form, for content of kind `file`
 * @returns the tensor as a client would send it
 * @throws Error saying how many bytes or elements are needed and found, for a file of another size
 */
export function warmupTensor(plan: WarmupInputPlan, rows: number, file: Uint8Array | undefined): Tensor {
  const { name, datatype, rowShape, content } = plan;
  const repeats = Math.max(1, rows);
  const elements = rowShape.reduce((product, dim) => product * dim, 1);
  const shape = rows === 0 ? rowShape : [rows, ...rowShape];
  if (content.kind === 'file') {
    const row = file ?? new Uint8Array(0);
    checkRow(datatype, elements, row);
    const data = new Uint8Array(row.byteLength * repeats);
    for (let i = 0; i < repeats; i++) data.set(row, i * row.byteLength);
    return { name, datatype, shape, data };
  }
  const data = new Uint8Array(elements * repeats * (elementSize(datatype) || 4));
  // Strings of random bytes would not be text: they are empty, as in Triton.
  if (content.kind === 'random' && elementSize(datatype) > 0) fillRandom(data, datatype);
  return { name, datatype, shape, data };
}

function checkRow(datatype: DataType, elements: number, row: Uint8Array): void {
  const size = elementSize(datatype);
  if (size > 0) {
    if (row.byteLength !== elements * size) throw new Error(`expected ${elements * size} bytes, found ${row.byteLength}`);
    return;
  }
  const layout = inspectBytes(row);
  if (layout.kind !== 'complete' || layout.elements !== elements) {
    const end = layout.kind === 'complete' ? '' : ', the last of them cut off';
    throw new Error(`expected ${elements} elements, each a 4-byte length and that many bytes, found ${layout.elements}${end}`);
  }
}

function fillRandom(data: Uint8Array, datatype: DataType): void {
  const size = elementSize(datatype);
  const view = new DataView(data.buffer);
  const made = Math.min(PERIOD, data.byteLength / size);
  let state = 0x9e3779b9;
  for (let i = 0; i < made; i++) {
    // A linear congruential generator (Numerical Recipes' constants); its high bits are good enough.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    writeElement(view, i * size, datatype, state / 2 ** 32);
  }
  for (let have = made * size; have < data.byteLength; have *= 2) data.copyWithin(have, 0, Math.min(have, data.byteLength - have));
}

/** @param value in [0, 1) */
function writeElement(view: DataView, at: number, datatype: DataType, value: number): void {
  if (datatype === 'FP64') view.setFloat64(at, value, true);
  else if (datatype === 'FP32') view.setFloat32(at, value, true);
  else if (datatype === 'FP16') view.setUint16(at, toFloat16Bits(value), true);
  else if (datatype === 'BF16') view.setUint16(at, toBFloat16Bits(value), true);
  // The lowest byte of an integer of any width.
  else view.setUint8(at, value < 0.5 ? 0 : 1);
}
