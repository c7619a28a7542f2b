/**
 * The host's end of the socket. Reads block the thread: a host has nothing else to do while no frame is there, and
 * leaving the event loop out saves tens of microseconds per batch. A frame is a view that is valid until the next
 * `read`; it begins at a multiple of 8, so that typed arrays may lie over the tensors in it.
 */
import { readSync, writevSync } from 'node:fs';
import { MAX_FRAME_BYTES } from '../host-protocol/frames.js';

const BUFFER_BYTES = 256 * 1024;

export class HostChannel {
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #start = 0;
  #end = 0;

  constructor(private readonly fd: number) {}

  /** The next frame, or undefined when the other end has gone. */
  read(): Buffer | undefined {
    if (this.#start === this.#end) this.#start = this.#end = 0;
    if (!this.#fill(8)) return undefined;
    const length = this.#buffer.readUInt32LE(this.#start);
    if (length < 16 || length > MAX_FRAME_BYTES || length % 8 !== 0) throw new Error(`frame of ${length} bytes`);
    if (length > BUFFER_BYTES) return this.#readLong(length);
    if (!this.#fill(length)) return undefined;
    const frame = this.#buffer.subarray(this.#start, this.#start + length);
    this.#start += length;
    return frame;
  }

  /** Whole frames that have already arrived behind the last one read, oldest first. */
  *arrived(): Generator<Buffer> {
    for (let at = this.#start; at + 16 <= this.#end;) {
      const length = this.#buffer.readUInt32LE(at);
      if (at + length > this.#end) return;
      yield this.#buffer.subarray(at, at + length);
      at += length;
    }
  }

  /** Writes all parts before it returns. */
  write(parts: Uint8Array[]): void {
    let rest = parts;
    for (;;) {
      let written = this.#writeSome(rest);
      let i = 0;
      for (; i < rest.length && written >= rest[i]!.byteLength; i++) written -= rest[i]!.byteLength;
      if (i === rest.length) return;
      rest = [rest[i]!.subarray(written), ...rest.slice(i + 1)];
    }
  }

  #writeSome(parts: Uint8Array[]): number {
    try {
      return writevSync(this.fd, parts);
    } catch (error) {
      // Nobody is left to answer, or to tell.
      if ((error as NodeJS.ErrnoException).code === 'EPIPE') process.kill(process.pid, 'SIGKILL');
      throw error;
    }
  }

  /** Makes at least `bytes` available from the start; false at the end of the stream. */
  #fill(bytes: number): boolean {
    if (this.#start + bytes > BUFFER_BYTES) {
      this.#buffer.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    while (this.#end - this.#start < bytes) {
      const got = readSync(this.fd, this.#buffer, this.#end, BUFFER_BYTES - this.#end, null);
      if (got === 0) return false;
      this.#end += got;
    }
    return true;
  }

  #readLong(length: number): Buffer | undefined {
    const frame = Buffer.allocUnsafeSlow(length);
    let have = this.#buffer.copy(frame, 0, this.#start, this.#end);
    this.#start = this.#end = 0;
    while (have < length) {
      const got = readSync(this.fd, frame, have, length - have, null);
      if (got === 0) return undefined;
      have += got;
    }
    return frame;
  }
}
