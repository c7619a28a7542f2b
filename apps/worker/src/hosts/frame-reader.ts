/** Cuts the stream of a socket into frames. A frame lies in the chunk that brought it where it came in one piece. */
import { MAX_FRAME_BYTES } from '../host-protocol/frames.js';
import type { CopyCounter } from '../infer/copy-counter.js';

export class FrameReader {
  #rest: Buffer | undefined;
  #have = 0;

  /** @param copies `outBytes` counts the bytes that are moved to put frames together */
  constructor(
    private readonly onFrame: (frame: Buffer) => void,
    private readonly copies: CopyCounter,
  ) {}

  /** @throws Error when the stream is not of this protocol */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.byteLength) {
      if (this.#rest) {
        at += this.#continue(this.#rest, chunk, at);
        continue;
      }
      const left = chunk.byteLength - at;
      const length = left >= 4 ? checked(chunk.readUInt32LE(at)) : 0;
      if (length > 0 && left >= length) {
        this.onFrame(chunk.subarray(at, at + length));
        at += length;
      } else {
        this.#rest = Buffer.allocUnsafeSlow(length || 4);
        this.#have = chunk.copy(this.#rest, 0, at);
        this.copies.outBytes += this.#have;
        at = chunk.byteLength;
      }
    }
  }

  /** Moves bytes into the frame that is being put together; hands it on when it is whole. */
  #continue(rest: Buffer, chunk: Buffer, at: number): number {
    const copied = chunk.copy(rest, this.#have, at);
    this.#have += copied;
    this.copies.outBytes += copied;
    if (this.#have < rest.byteLength) return copied;
    if (rest.byteLength === 4) {
      // Only its length was known so far.
      this.#rest = Buffer.allocUnsafeSlow(checked(rest.readUInt32LE(0)));
      rest.copy(this.#rest);
      return copied;
    }
    this.#rest = undefined;
    this.#have = 0;
    this.onFrame(rest);
    return copied;
  }
}

function checked(length: number): number {
  if (length < 16 || length > MAX_FRAME_BYTES || length % 8 !== 0) throw new Error(`instance host sent a frame of ${length} bytes`);
  return length;
}
