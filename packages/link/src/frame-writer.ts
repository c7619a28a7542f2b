/**
 * Gathers the frames of one turn of the event loop into few large writes. Small parts are copied into a slab, since a
 * system call's list of many short pieces costs more than the copy; parts of 4 KiB and more are written from where they
 * lie. Its invariant: bytes of a slab that were handed to the socket are never written again.
 */
import type { Writable } from 'node:stream';
import { HEADER_BYTES } from './frames.js';

const SLAB_BYTES = 64 * 1024;
const REFERENCE_BYTES = 4096;

export class FrameWriter {
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #from = 0;
  #to = 0;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  /** Bytes gathered and not flushed. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param parts the body; those of 4 KiB and more must stay unchanged until they are written */
  frame(type: number, parts: readonly Uint8Array[], bodyBytes: number): void {
    this.header(type, bodyBytes);
    for (const part of parts) this.part(part);
  }

  /** Begins a frame whose parts follow. */
  header(type: number, bodyBytes: number): void {
    this.#reserve(HEADER_BYTES);
    const at = this.#to;
    this.#slab.writeUInt32LE(bodyBytes, at);
    this.#slab[at + 4] = type;
    this.#to = at + HEADER_BYTES;
    this.#bytes += HEADER_BYTES;
  }

  part(part: Uint8Array): void {
    this.#bytes += part.byteLength;
    if (part.byteLength >= REFERENCE_BYTES) {
      this.#close();
      this.#pieces.push(part);
      return;
    }
    this.#reserve(part.byteLength);
    this.#slab.set(part, this.#to);
    this.#to += part.byteLength;
  }

  u8(value: number): void {
    this.#reserve(1);
    this.#to = this.#slab.writeUInt8(value, this.#to);
    this.#bytes += 1;
  }

  u32(value: number): void {
    this.#reserve(4);
    this.#to = this.#slab.writeUInt32LE(value, this.#to);
    this.#bytes += 4;
  }

  f64(value: number): void {
    this.#reserve(8);
    this.#to = this.#slab.writeDoubleLE(value, this.#to);
    this.#bytes += 8;
  }

  /** Hands everything gathered to the stream, in one system call where that is possible. */
  flush(stream: Writable): void {
    if (this.#bytes === 0) return;
    this.#close();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    if (pieces.length > 1) stream.cork();
    for (const piece of pieces) stream.write(piece);
    if (pieces.length > 1) stream.uncork();
  }

  #reserve(bytes: number): void {
    if (SLAB_BYTES - this.#to >= bytes) return;
    this.#close();
    this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    this.#from = 0;
    this.#to = 0;
  }

  #close(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#slab.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}
