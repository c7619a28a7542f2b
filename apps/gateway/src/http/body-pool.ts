/**
 * Memory for the bodies of large binary requests, used again once a request has been answered. Without it every such
 * body is memory for the collector to find: at 100 KB a request a fifth of the gateway's processor time. Invariant: a
 * buffer is given back only when nobody reads it any more, which is known for one case alone: the result is there.
 * Whatever ends otherwise (a timeout, a client that left) leaves its buffer to the collector.
 */

/** Smallest and largest buffer that is kept, bytes; sizes are powers of two. */
const SMALLEST_BITS = 16;
const LARGEST_BITS = 23;
/** What is kept in all, bytes. */
const MOST_BYTES = 32 * 1024 * 1024;

export class BodyPool {
  /** By the power of two of their size. */
  readonly #free: Buffer[][] = Array.from({ length: LARGEST_BITS + 1 }, () => []);
  #freeBytes = 0;

  /** @returns memory that holds `bytes` or more; what is in it is not defined */
  take(bytes: number): Buffer {
    const bits = sizeBits(bytes);
    if (bits > LARGEST_BITS) return Buffer.allocUnsafeSlow(bytes);
    const kept = this.#free[bits]!.pop();
    if (kept === undefined) return Buffer.allocUnsafeSlow(2 ** bits);
    this.#freeBytes -= kept.length;
    return kept;
  }

  /** @param buffer as {@link take} returned it, not a part of it */
  give(buffer: Buffer): void {
    const bits = sizeBits(buffer.length);
    if (bits > LARGEST_BITS || 2 ** bits !== buffer.length || this.#freeBytes + buffer.length > MOST_BYTES) return;
    this.#free[bits]!.push(buffer);
    this.#freeBytes += buffer.length;
  }

  /** Lets go of what is kept: for when there has been no use for it. */
  clear(): void {
    for (const buffers of this.#free) buffers.length = 0;
    this.#freeBytes = 0;
  }

  get freeBytes(): number {
    return this.#freeBytes;
  }
}

function sizeBits(bytes: number): number {
  return Math.max(SMALLEST_BITS, 32 - Math.clz32(Math.max(1, bytes - 1)));
}
