/**
 * The BYTES layout: per element a 4-byte little-endian unsigned length, then that many bytes; row-major, no padding.
 * Invariant: nothing here reads past the end of its argument, whatever the lengths claim.
 */
import { TensorFormatError } from './errors.js';

const encoder = new TextEncoder();

/** What walking a BYTES blob found; only `complete` is a well-formed tensor. */
export type BytesLayout =
  | { readonly kind: 'complete'; readonly elements: number }
  /** 1 to 3 bytes are left where a length should stand. */
  | { readonly kind: 'cut_length'; readonly elements: number; readonly leftBytes: number }
  /** The last of `elements` claims more bytes than are left. */
  | { readonly kind: 'cut_element'; readonly elements: number; readonly expectedBytes: number; readonly leftBytes: number };

function lengthAt(data: Uint8Array, at: number): number {
  return (
    ((data[at] as number) | ((data[at + 1] as number) << 8) | ((data[at + 2] as number) << 16) | ((data[at + 3] as number) << 24)) >>> 0
  );
}

/** Walks `data` without copying. Never throws. */
export function inspectBytes(data: Uint8Array): BytesLayout {
  const end = data.length;
  let at = 0;
  let elements = 0;
  while (at < end) {
    const left = end - at;
    if (left < 4) return { kind: 'cut_length', elements, leftBytes: left };
    const length = lengthAt(data, at);
    at += 4;
    elements += 1;
    if (length > end - at) return { kind: 'cut_element', elements, expectedBytes: length, leftBytes: end - at };
    at += length;
  }
  return { kind: 'complete', elements };
}

/** Packs elements; strings become UTF-8. @throws TensorFormatError for an element of 2^32 bytes or more */
export function encodeBytes(elements: readonly (string | Uint8Array)[]): Uint8Array {
  const parts = elements.map((e) => (typeof e === 'string' ? encoder.encode(e) : e));
  let size = 0;
  for (const part of parts) {
    if (part.length > 0xffffffff) throw new TensorFormatError(`a BYTES element of ${part.length} bytes exceeds the limit of 4294967295`);
    size += 4 + part.length;
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    const n = part.length;
    out[at] = n & 0xff;
    out[at + 1] = (n >>> 8) & 0xff;
    out[at + 2] = (n >>> 16) & 0xff;
    out[at + 3] = n >>> 24;
    out.set(part, at + 4);
    at += 4 + n;
  }
  return out;
}

/** The elements as views into `data`. @throws TensorFormatError when the blob is cut off */
export function decodeBytes(data: Uint8Array): Uint8Array[] {
  const layout = inspectBytes(data);
  if (layout.kind !== 'complete') {
    throw new TensorFormatError(
      `BYTES data ends inside ${layout.kind === 'cut_length' ? 'a length' : 'an element'} after ${layout.elements} elements`,
    );
  }
  const out: Uint8Array[] = [];
  for (let at = 0; at < data.length;) {
    const length = lengthAt(data, at);
    out.push(data.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return out;
}
