/**
 * Turns inference.InferTensorContents into a tensor's canonical bytes. It scans the message twice, once to count and once
 * to write, so that nothing is allocated beyond the result; one packed run of floats is returned as a view.
 */
import type { DataType } from '@paceline/tensor';
import { malformed, WireReader } from './wire-reader.js';

/** A piece of the message that holds InferTensorContents; several pieces are read as one. */
export interface ContentRange {
  readonly start: number;
  readonly end: number;
}

/** The field numbers of InferTensorContents. */
export const CONTENT_FIELDS = { BOOL: 1, INT: 2, INT64: 3, UINT: 4, UINT64: 5, FP32: 6, FP64: 7, BYTES: 8 } as const;

/** The field that carries a datatype; undefined for FP16 and BF16, which only raw contents carry. */
export function contentFieldOf(datatype: DataType): number | undefined {
  return FIELD_OF[datatype];
}

const FIELD_OF: Readonly<Record<DataType, number | undefined>> = {
  BOOL: 1,
  INT8: 2,
  INT16: 2,
  INT32: 2,
  INT64: 3,
  UINT8: 4,
  UINT16: 4,
  UINT32: 4,
  UINT64: 5,
  FP32: 6,
  FP64: 7,
  BYTES: 8,
  FP16: undefined,
  BF16: undefined,
};

/** Values per field number; index 0 is the total length of the byte strings. */
export type ContentCounts = readonly number[];

const isFixed = (field: number): boolean => field === CONTENT_FIELDS.FP32 || field === CONTENT_FIELDS.FP64;
const widthOf = (field: number): number => (field === CONTENT_FIELDS.FP32 ? 4 : 8);

/** How a field's tag says its values lie: packed, one value, or not as this field can be. */
function layoutOf(field: number, wireType: number): 'packed' | 'single' | 'unknown' {
  if (field < 1 || field > 8) return 'unknown';
  if (field === CONTENT_FIELDS.BYTES) return wireType === 2 ? 'single' : 'unknown';
  if (wireType === 2) return 'packed';
  const single = isFixed(field) ? (field === CONTENT_FIELDS.FP32 ? 5 : 1) : 0;
  return wireType === single ? 'single' : 'unknown';
}

/** @throws ServingError INVALID_ARGUMENT for bytes that are no such message. */
export function countContents(message: Uint8Array, ranges: readonly ContentRange[]): ContentCounts {
  const counts = [0, 0, 0, 0, 0, 0, 0, 0, 0];
  scan(message, ranges, (field, reader, packed) => {
    if (field === CONTENT_FIELDS.BYTES) {
      const length = reader.varint32();
      reader.advance(length);
      counts[0]! += length;
      counts[8]! += 1;
    } else if (!packed) {
      if (isFixed(field)) reader.advance(widthOf(field));
      else reader.varint64();
      counts[field]! += 1;
    } else {
      const length = reader.varint32();
      const start = reader.advance(length);
      if (isFixed(field)) {
        if (length % widthOf(field) !== 0) malformed(`${length} bytes are no whole number of ${widthOf(field)}-byte values`);
        counts[field]! += length / widthOf(field);
      } else {
        let values = 0;
        for (let i = start; i < start + length; i += 1) if (message[i]! < 0x80) values += 1;
        if (length > 0 && message[start + length - 1]! >= 0x80) malformed('a number is cut off');
        counts[field]! += values;
      }
    }
  });
  return counts;
}

/** Told the place (0-based) and value of an element that its datatype cannot hold. Must throw. */
export type OutOfRange = (index: number, value: number) => never;

/**
 * The values of the field that carries `datatype`, as canonical bytes. `counts` must be those of the same ranges.
 * @returns a fresh buffer, or a view of `message` where one packed run holds all.
 */
export function contentsToBytes(
  message: Uint8Array,
  ranges: readonly ContentRange[],
  counts: ContentCounts,
  datatype: DataType,
  outOfRange: OutOfRange,
): Uint8Array {
  const wanted = FIELD_OF[datatype];
  if (wanted === undefined) return new Uint8Array(0);
  const count = counts[wanted]!;
  if (isFixed(wanted)) return fixedToBytes(message, ranges, wanted, count);
  const size = datatype === 'BYTES' ? counts[0]! + 4 * count : count * ELEMENT_BYTES[datatype]!;
  const out = new Uint8Array(size);
  const view = new DataView(out.buffer);
  let at = 0;
  let index = 0;
  const put = (reader: WireReader): void => {
    reader.varint64();
    at += putVarint(view, at, datatype, reader, index, outOfRange);
    index += 1;
  };
  scan(message, ranges, (field, reader, packed, tag) => {
    if (field !== wanted) reader.skip(tag);
    else if (field === CONTENT_FIELDS.BYTES) {
      const length = reader.varint32();
      const start = reader.advance(length);
      view.setUint32(at, length, true);
      out.set(message.subarray(start, start + length), at + 4);
      at += 4 + length;
    } else if (packed) {
      const outer = reader.enter();
      while (reader.pos < reader.end) put(reader);
      reader.leave(outer);
    } else put(reader);
  });
  return out;
}

const ELEMENT_BYTES: Readonly<Partial<Record<DataType, number>>> = {
  BOOL: 1,
  INT8: 1,
  UINT8: 1,
  INT16: 2,
  UINT16: 2,
  INT32: 4,
  UINT32: 4,
  INT64: 8,
  UINT64: 8,
};

/** Writes the varint just read; returns the bytes written. */
function putVarint(view: DataView, at: number, datatype: DataType, reader: WireReader, index: number, outOfRange: OutOfRange): number {
  switch (datatype) {
    case 'BOOL':
      view.setUint8(at, (reader.low | reader.high) === 0 ? 0 : 1);
      return 1;
    case 'INT64':
    case 'UINT64':
      view.setUint32(at, reader.low, true);
      view.setUint32(at + 4, reader.high, true);
      return 8;
    case 'UINT8':
      if (reader.low > 255) outOfRange(index, reader.low);
      view.setUint8(at, reader.low);
      return 1;
    case 'UINT16':
      if (reader.low > 65535) outOfRange(index, reader.low);
      view.setUint16(at, reader.low, true);
      return 2;
    case 'INT8': {
      const value = reader.low | 0;
      if (value < -128 || value > 127) outOfRange(index, value);
      view.setInt8(at, value);
      return 1;
    }
    case 'INT16': {
      const value = reader.low | 0;
      if (value < -32768 || value > 32767) outOfRange(index, value);
      view.setInt16(at, value, true);
      return 2;
    }
    default:
      view.setUint32(at, reader.low, true);
      return 4;
  }
}

/** Floats lie on the wire as in a tensor: one packed run is a view, anything else is joined. */
function fixedToBytes(message: Uint8Array, ranges: readonly ContentRange[], wanted: number, count: number): Uint8Array {
  const width = widthOf(wanted);
  let out: Uint8Array | undefined;
  let at = 0;
  scan(message, ranges, (field, reader, packed, tag) => {
    if (field !== wanted) {
      reader.skip(tag);
      return;
    }
    const length = packed ? reader.varint32() : width;
    const start = reader.advance(length);
    const piece = message.subarray(start, start + length);
    if (length === count * width) {
      out = piece;
      return;
    }
    out ??= new Uint8Array(count * width);
    if (length > 0) out.set(piece, at);
    at += length;
  });
  return out ?? new Uint8Array(0);
}

/** Calls `visit` at each value or packed run of a known field; `visit` must consume it. */
function scan(
  message: Uint8Array,
  ranges: readonly ContentRange[],
  visit: (field: number, reader: WireReader, packed: boolean, tag: number) => void,
): void {
  const reader = new WireReader(message);
  for (const range of ranges) {
    reader.pos = range.start;
    reader.end = range.end;
    while (reader.pos < reader.end) {
      const tag = reader.varint32();
      const layout = layoutOf(tag >>> 3, tag & 7);
      if (layout === 'unknown') reader.skip(tag);
      else visit(tag >>> 3, reader, layout === 'packed', tag);
    }
  }
}
