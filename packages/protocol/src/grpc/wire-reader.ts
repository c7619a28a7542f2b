/**
 * Reads the protobuf wire format from a buffer without copying it. Every read checks its end, so a message that lies about
 * a length ends in INVALID_ARGUMENT and never in a read outside it. A reader works on one message at a time: nested
 * messages are read by narrowing `end` and restoring it.
 */
import { ServingError } from '../error.js';

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const MAX_GROUP_DEPTH = 64;
const TWO_32 = 4294967296;

/** @throws ServingError INVALID_ARGUMENT, always. */
export function malformed(detail: string): never {
  throw new ServingError('INVALID_ARGUMENT', `Unable to parse request: ${detail}`, { reason: 'malformed_message' });
}

export class WireReader {
  pos = 0;
  end: number;
  /** Halves of the last {@link varint64}, unsigned. */
  low = 0;
  high = 0;

  constructor(readonly bytes: Uint8Array) {
    this.end = bytes.length;
  }

  /** A varint cut to its low 32 bits, unsigned; longer encodings are read whole. */
  varint32(): number {
    const bytes = this.bytes;
    if (this.pos < this.end) {
      const first = bytes[this.pos]!;
      if (first < 0x80) {
        this.pos += 1;
        return first;
      }
    }
    this.varint64();
    return this.low;
  }

  /** Reads a varint of up to ten bytes into {@link low} and {@link high}. */
  varint64(): void {
    const { bytes, end } = this;
    let pos = this.pos;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (pos >= end) malformed('a number is cut off');
      const byte = bytes[pos++]!;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else high |= (bits & 1) << 31;
      if (byte < 0x80) {
        this.pos = pos;
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    malformed('a number has more than ten bytes');
  }

  /** A signed 64-bit varint as a number: exact up to 2^53, nearest beyond. */
  int64Number(): number {
    const byte = this.pos < this.end ? this.bytes[this.pos]! : 0x80;
    if (byte < 0x80) {
      this.pos += 1;
      return byte;
    }
    this.varint64();
    return (this.high | 0) * TWO_32 + this.low;
  }

  uint64(): bigint {
    this.varint64();
    return (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  int64(): bigint {
    return BigInt.asIntN(64, this.uint64());
  }

  double(): number {
    const at = this.advance(8);
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + at, 8).getFloat64(0, true);
  }

  /** Steps over `count` bytes and returns where they began. */
  advance(count: number): number {
    const at = this.pos;
    if (count > this.end - at) malformed(`${count} bytes are announced, ${this.end - at} remain`);
    this.pos = at + count;
    return at;
  }

  /** Enters a length-delimited field: returns the outer end, to be given to {@link leave}. */
  enter(): number {
    const length = this.varint32();
    if (length > this.end - this.pos) malformed(`a field of ${length} bytes is announced, ${this.end - this.pos} remain`);
    const outer = this.end;
    this.end = this.pos + length;
    return outer;
  }

  leave(outer: number): void {
    this.pos = this.end;
    this.end = outer;
  }

  /** A `bytes` field as a view. */
  view(): Uint8Array {
    const length = this.varint32();
    const at = this.advance(length);
    return this.bytes.subarray(at, at + length);
  }

  /** A `string` field. Invalid UTF-8 is malformed. */
  string(): string {
    const length = this.varint32();
    const at = this.advance(length);
    const bytes = this.bytes;
    const end = at + length;
    if (length <= 32) {
      let text = '';
      let i = at;
      for (; i < end; i += 1) {
        const byte = bytes[i]!;
        if (byte >= 0x80) break;
        text += String.fromCharCode(byte);
      }
      if (i === end) return text;
    }
    try {
      return UTF8.decode(bytes.subarray(at, end));
    } catch {
      return malformed('a string is not valid UTF-8');
    }
  }

  /** Steps over the value of an unknown field. */
  skip(tag: number, depth = 0): void {
    if (tag >>> 3 === 0) malformed('field number 0');
    switch (tag & 7) {
      case 0:
        this.varint64();
        return;
      case 1:
        this.advance(8);
        return;
      case 2:
        this.advance(this.varint32());
        return;
      case 3: {
        if (depth >= MAX_GROUP_DEPTH) malformed(`groups nest deeper than ${MAX_GROUP_DEPTH}`);
        for (;;) {
          const inner = this.varint32();
          if ((inner & 7) === 4) {
            if (inner >>> 3 !== tag >>> 3) malformed('a group ends that did not begin');
            return;
          }
          this.skip(inner, depth + 1);
        }
      }
      case 5:
        this.advance(4);
        return;
      default:
        malformed(`wire type ${tag & 7}`);
    }
  }
}
