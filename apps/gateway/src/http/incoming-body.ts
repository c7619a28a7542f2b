/** Request bodies that come in several pieces: copied once, into a buffer of the announced length; or passed over. */
import type { BodyPool } from './body-pool.js';
import type { HttpReply } from './infer-reply.js';
import type { InferHead } from './request-head.js';

/** The body of a request that was refused by its head: it stands between two requests, so it is read, but not kept. */
export class RefusedBody {
  readonly reservedBytes = 0;
  filledBytes = 0;

  constructor(
    readonly head: InferHead,
    /** Is sent once the client has said all that it announced. */
    readonly reply: HttpReply,
  ) {}

  get totalBytes(): number {
    return this.head.contentLength;
  }

  get complete(): boolean {
    return this.filledBytes === this.totalBytes;
  }

  /** @returns how many bytes of `piece` belong to the body */
  take(piece: Buffer): number {
    const used = Math.min(piece.length, this.totalBytes - this.filledBytes);
    this.filledBytes += used;
    return used;
  }
}

export class IncomingBody {
  /** The body; inputs are views of it. */
  readonly buffer: Buffer;
  filledBytes = 0;
  /** Memory to be given back. */
  #pooled: Buffer | undefined;

  constructor(
    readonly head: InferHead,
    /** What it takes of the byte budget. */
    readonly reservedBytes: number,
    private readonly pool: BodyPool,
  ) {
    // JSON is read once and may go to another thread for good; only bytes that stay where they are can be used again.
    if (head.inferenceHeaderLength !== undefined && head.contentEncoding === undefined && reservedBytes > 0) {
      this.#pooled = pool.take(head.contentLength);
      this.buffer = this.#pooled.subarray(0, head.contentLength);
    } else this.buffer = Buffer.allocUnsafeSlow(head.contentLength);
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

  /** The request has its result: nobody reads the body any more. */
  done(): void {
    if (this.#pooled !== undefined) this.pool.give(this.#pooled);
    this.#pooled = undefined;
  }
}
