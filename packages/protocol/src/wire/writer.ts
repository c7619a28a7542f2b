/**
 * Writes fields one after another into blocks of memory that are never written twice, so that what `finish` returns may
 * wait in a socket for as long as it likes. Large byte arrays are referenced where they lie instead of copied.
 * Integers are little-endian; lengths and counts are LEB128.
 */

/** Byte arrays from this size on are referenced; below it a copy costs less than another segment for the socket. */
export const REFERENCED_BYTES = 4096;

const BLOCK_BYTES = 64 * 1024;
/** Longest number and longest string that are written without asking for room twice. */
const NUMBER_BYTES = 10;
const SHORT_CHARS = 127;

/** What a finished writer left of its block: the next one goes on there, so small messages share an allocation. */
let spare: Buffer | undefined;

/** A number that is written later, see {@link WireWriter.reserveU32}. */
export interface ReservedU32 {
  readonly block: Buffer;
  readonly at: number;
}

export class WireWriter {
  readonly #parts: Uint8Array[] = [];
  #partsBytes = 0;
  #block: Buffer;
  /** The current part is #block[#start .. #at]. */
  #start = 0;
  #at = 0;

  constructor() {
    this.#block = spare ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    spare = undefined;
  }

  /** Bytes written so far, referenced ones included. */
  get totalBytes(): number {
    return this.#partsBytes + this.#at - this.#start;
  }

  u8(value: number): void {
    this.#room(1);
    this.#block[this.#at++] = value;
  }

  u16(value: number): void {
    this.#room(2);
    this.#block[this.#at++] = value;
    this.#block[this.#at++] = value >>> 8;
  }

  u32(value: number): void {
    this.#room(4);
    this.#at = putU32(this.#block, this.#at, value);
  }

  f64(value: number): void {
    this.#room(8);
    this.#at = this.#block.writeDoubleLE(value, this.#at);
  }

  /**
   * Writes an integer in as few bytes as it needs.
   * @param value 0 .. Number.MAX_SAFE_INTEGER
   * @throws RangeError for anything else: that is a bug of the caller
   */
  varint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`cannot write ${value}: expected an integer from 0 to 2^53 - 1`);
    this.#room(NUMBER_BYTES);
    let rest = value;
    while (rest > 0x7fffffff) {
      this.#block[this.#at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    while (rest > 127) {
      this.#block[this.#at++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#block[this.#at++] = rest;
  }

  /** UTF-8 with its length ahead. Half a surrogate pair becomes U+FFFD. */
  string(text: string): void {
    const { length } = text;
    if (length <= SHORT_CHARS) {
      this.#room(1 + SHORT_CHARS);
      const block = this.#block;
      let at = this.#at;
      block[at++] = length;
      let index = 0;
      while (index < length) {
        const char = text.charCodeAt(index);
        if (char > 127) break;
        block[at++] = char;
        index++;
      }
      if (index === length) {
        this.#at = at;
        return;
      }
    }
    const byteLength = Buffer.byteLength(text, 'utf8');
    this.varint(byteLength);
    this.#room(byteLength);
    this.#at += this.#block.write(text, this.#at, byteLength, 'utf8');
  }

  /** Bytes with their length ahead; from {@link REFERENCED_BYTES} on they must stay unchanged until they are sent. */
  bytes(data: Uint8Array): void {
    this.varint(data.length);
    if (data.length >= REFERENCED_BYTES) {
      this.#closePart();
      this.#parts.push(data);
      this.#partsBytes += data.length;
      return;
    }
    this.#room(data.length);
    this.#block.set(data, this.#at);
    this.#at += data.length;
  }

  /** Leaves room for a number that is not known yet, e.g. the length of a frame. */
  reserveU32(): ReservedU32 {
    this.#room(4);
    const reserved = { block: this.#block, at: this.#at };
    this.#at += 4;
    return reserved;
  }

  /** Fills what {@link reserveU32} left; allowed until the segments are handed on. */
  fillU32(reserved: ReservedU32, value: number): void {
    putU32(reserved.block, reserved.at, value);
  }

  /** @returns the segments, in order. The writer must not be used again. */
  finish(): Uint8Array[] {
    this.#closePart();
    if (this.#block.length - this.#at >= REFERENCED_BYTES) spare = this.#block.subarray(this.#at);
    return this.#parts;
  }

  #closePart(): void {
    if (this.#at === this.#start) return;
    this.#parts.push(this.#block.subarray(this.#start, this.#at));
    this.#partsBytes += this.#at - this.#start;
    this.#start = this.#at;
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#block.length) return;
    this.#closePart();
    this.#block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes));
    this.#start = 0;
    this.#at = 0;
  }
}

function putU32(block: Buffer, at: number, value: number): number {
  block[at] = value;
  block[at + 1] = value >>> 8;
  block[at + 2] = value >>> 16;
  block[at + 3] = value >>> 24;
  return at + 4;
}
