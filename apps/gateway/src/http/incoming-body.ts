/** A request body that comes in several pieces: each is copied once, into a buffer of the announced length. */
import type { InferHead } from './request-head.js';

export class IncomingBody {
  readonly buffer: Buffer;
  filledBytes = 0;

  constructor(
    readonly head: InferHead,
    /** What it takes of the byte budget. */
    readonly reservedBytes: number,
  ) {
    // Memory that nobody else shares, because inputs are views of it; the system provides it as it is filled.
    this.buffer = Buffer.allocUnsafeSlow(head.contentLength);
  }

  get totalBytes(): number {
    return this.buffer.length;
  }

  get complete(): boolean {
    return this.filledBytes === this.buffer.length;
  }

  /** @returns how many bytes of `piece` belong to the body */
  take(piece: Buffer): number {
    const used = piece.copy(this.buffer, this.filledBytes);
    this.filledBytes += used;
    return used;
  }
}
