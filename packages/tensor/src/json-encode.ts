/**
 * Canonical bytes → the JSON text of a `data` array, always flat. Numbers are written in Triton's form: an FP32 as
 * the double it is, a whole float with ".0", an exponent without "+". NaN and the infinities become strings.
 */
import { decodeBytes } from './bytes.js';
import { elementSize, type DataType } from './datatype.js';
import { TensorFormatError } from './errors.js';
import { fromBFloat16Bits, fromFloat16Bits } from './float16.js';

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function floatText(value: number): string {
  if (value - value !== 0) return value !== value ? '"NaN"' : value > 0 ? '"Infinity"' : '"-Infinity"';
  if (Math.trunc(value) === value) {
    if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
    const text = `${value}`;
    return value < 1e21 && value > -1e21 ? `${text}.0` : text.replace('+', '');
  }
  return `${value}`;
}

/** A typed view of `data`; copies only where its offset is not aligned. */
function aligned(data: Uint8Array, size: number): { readonly buffer: ArrayBufferLike; readonly offset: number; readonly length: number } {
  // Not slice(): on a Buffer that makes a view.
  const bytes = data.byteOffset % size === 0 ? data : new Uint8Array(data);
  return { buffer: bytes.buffer, offset: bytes.byteOffset, length: Math.floor(bytes.byteLength / size) };
}

function joinFloats(values: ArrayLike<number>): string {
  const n = values.length;
  if (n === 0) return '[]';
  let text = `[${floatText(values[0] as number)}`;
  for (let i = 1; i < n; i++) text += `,${floatText(values[i] as number)}`;
  return `${text}]`;
}

function joinNarrow(data: Uint8Array, decode: (bits: number) => number): string {
  const { buffer, offset, length } = aligned(data, 2);
  return joinFloats(Array.from(new Uint16Array(buffer, offset, length), decode));
}

function joinStrings(data: Uint8Array): string {
  return `[${decodeBytes(data)
    .map((element, i) => {
      try {
        return JSON.stringify(strictUtf8.decode(element));
      } catch {
        throw new TensorFormatError(
          `element ${i} is not valid UTF-8 and cannot be sent as JSON. Please use the binary data format for output`,
        );
      }
    })
    .join(',')}]`;
}

/**
 * @param data as many bytes as whole elements need; may be unaligned
 * @returns a JSON array text, e.g. `[1.0,2.5]`
 * @throws TensorFormatError for a BYTES element that is not UTF-8 or a byte count that is not whole elements
 */
export function encodeJsonData(datatype: DataType, data: Uint8Array): string {
  const size = elementSize(datatype);
  if (size > 1 && data.byteLength % size !== 0) throw new TensorFormatError(`${data.byteLength} bytes are not whole ${datatype} elements`);
  if (datatype === 'BYTES') return joinStrings(data);
  if (datatype === 'FP16') return joinNarrow(data, fromFloat16Bits);
  if (datatype === 'BF16') return joinNarrow(data, fromBFloat16Bits);
  const { buffer, offset, length } = aligned(data, size);
  switch (datatype) {
    case 'BOOL':
      return `[${Array.from(new Uint8Array(buffer, offset, length), (b) => (b ? 'true' : 'false')).join(',')}]`;
    case 'UINT8':
      return `[${new Uint8Array(buffer, offset, length).join(',')}]`;
    case 'INT8':
      return `[${new Int8Array(buffer, offset, length).join(',')}]`;
    case 'UINT16':
      return `[${new Uint16Array(buffer, offset, length).join(',')}]`;
    case 'INT16':
      return `[${new Int16Array(buffer, offset, length).join(',')}]`;
    case 'UINT32':
      return `[${new Uint32Array(buffer, offset, length).join(',')}]`;
    case 'INT32':
      return `[${new Int32Array(buffer, offset, length).join(',')}]`;
    case 'UINT64':
      return `[${new BigUint64Array(buffer, offset, length).join(',')}]`;
    case 'INT64':
      return `[${new BigInt64Array(buffer, offset, length).join(',')}]`;
    case 'FP32':
      return joinFloats(new Float32Array(buffer, offset, length));
    case 'FP64':
      return joinFloats(new Float64Array(buffer, offset, length));
  }
}
