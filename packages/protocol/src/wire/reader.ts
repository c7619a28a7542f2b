/**
 * Reads what a {@link WireWriter} wrote. Byte arrays are views into the bytes that were given. Whatever the bytes are, the
 * only thing thrown is a {@link WireFormatError}, and no length is believed before as many bytes are known to be there.
 */
import { WireFormatError } from './format-error.js';
import { INTERNED_BYTES, internedString } from './interned-strings.js';

export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Where the next field begins, bytes from the head. */
  get offset(): number {
    return this.#at;
  }

  /** Bytes not read yet. */
  get remaining(): number {
    return this.#bytes.length - this.#at;
  }

  u8(what: string): number {
    if (this.#at >= this.#bytes.length) this.#short(what, 1);
    return this.#bytes[this.#at++]!;
  }

  u16(what: string): number {
    if (this.remaining < 2) this.#short(what, 2);
    const value = this.#bytes.readUInt16LE(this.#at);
    this.#at += 2;
    return value;
  }

  u32(what: string): number {
    if (this.remaining < 4) this.#short(what, 4);
    const value = this.#bytes.readUInt32LE(this.#at);
    this.#at += 4;
    return value;
  }

  f64(what: string): number {
    if (this.remaining < 8) this.#short(what, 8);
    const value = this.#bytes.readDoubleLE(this.#at);
    this.#at += 8;
    return value;
  }

  /** An integer from 0 to Number.MAX_SAFE_INTEGER. */
  varint(what: string): number {
    const first = this.u8(what);
    if (first < 128) return first;
    let value = first & 127;
    let scale = 128;
    for (;;) {
      const byte = this.u8(what);
      value += (byte & 127) * scale;
      if (value > Number.MAX_SAFE_INTEGER) this.fail(`${what}: the number is above 2^53 - 1`);
      if (byte < 128) return value;
      scale *= 128;
      if (scale > Number.MAX_SAFE_INTEGER) this.fail(`${what}: the number does not end`);
    }
  }

  /** How many items follow, each of at least one byte. */
  count(what: string): number {
    const count = this.varint(what);
    if (count > this.remaining) this.fail(`${what}: ${count} are announced, but ${this.remaining} bytes are left`);
    return count;
  }

  string(what: string): string {
    const length = this.varint(what);
    if (length > this.remaining) this.#short(what, length);
    const from = this.#at;
    this.#at = from + length;
    if (length === 0) return '';
    return length <= INTERNED_BYTES ? internedString(this.#bytes, from, this.#at) : this.#bytes.toString('utf8', from, this.#at);
  }

  /** A view into the bytes that are read, which keeps them alive. */
  bytes(what: string): Uint8Array {
    const length = this.varint(what);
    if (length > this.remaining) this.#short(what, length);
    const { buffer, byteOffset } = this.#bytes;
    const view = new Uint8Array(buffer, byteOffset + this.#at, length);
    this.#at += length;
    return view;
  }

  /** @throws WireFormatError where bytes are left over */
  end(what: string): void {
    if (this.remaining > 0) this.fail(`${what}: ${this.remaining} bytes too many`);
  }

  /** @throws WireFormatError naming `what` and the offset */
  fail(what: string): never {
    throw new WireFormatError(what, this.#at);
  }

  #short(what: string, bytes: number): never {
    this.fail(`${what}: needs ${bytes} bytes, but ${this.remaining} are left`);
  }
}
