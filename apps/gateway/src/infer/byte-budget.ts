/**
 * The memory that bodies may take while they are read and until they are answered, one budget for every protocol.
 * Invariant: what is in use is what was reserved minus what was released, and never above the limit. A refusal says when
 * trying again makes sense: when that many bytes will have been released at the rate of late.
 */
import { systemClock, type Clock } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';

/** Smaller bodies are not counted: the caps on connections and streams bound them. */
export const BUDGET_ABOVE_BYTES = 64 * 1024;

const WINDOW_US = 100_000;
const UNKNOWN_MS = 1000;
const MAX_MS = 60_000;

export class ByteBudget {
  #usedBytes = 0;
  /** Released in the window that is open, and since when. */
  #windowBytes = 0;
  #windowSinceUs: number;
  #bytesPerUs = 0;

  constructor(
    readonly limitBytes: number,
    private readonly clock: Clock = systemClock,
  ) {
    this.#windowSinceUs = clock.nowUs();
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** @returns false where they do not fit: nothing is counted then */
  reserve(bytes: number): boolean {
    if (this.#usedBytes + bytes > this.limitBytes) return false;
    this.#usedBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    if (bytes === 0) return;
    this.#usedBytes -= bytes;
    this.#windowBytes += bytes;
    const spanUs = this.clock.nowUs() - this.#windowSinceUs;
    if (spanUs < WINDOW_US) return;
    const rate = this.#windowBytes / spanUs;
    this.#bytesPerUs = this.#bytesPerUs === 0 ? rate : (this.#bytesPerUs + rate) / 2;
    this.#windowBytes = 0;
    this.#windowSinceUs += spanUs;
  }

  /** The error for a body that does not fit: 429, or 413 where it never will. */
  refusal(bytes: number): ServingError {
    if (bytes > this.limitBytes) {
      return new ServingError(
        'INVALID_ARGUMENT',
        `request body size of ${bytes} bytes exceeds the ${this.limitBytes} bytes that this server keeps for all bodies. Use --max-buffered-bytes to increase the limit.`,
        { reason: 'body_too_large', httpStatus: 413 },
      );
    }
    const text = `a request body of ${bytes} bytes does not fit beside the ${this.#usedBytes} bytes of other bodies, the limit of this server is ${this.limitBytes} (--max-buffered-bytes)`;
    const missingBytes = this.#usedBytes + bytes - this.limitBytes;
    const retryAfterMs =
      this.#bytesPerUs === 0 ? UNKNOWN_MS : Math.min(MAX_MS, Math.max(1, Math.ceil(missingBytes / this.#bytesPerUs / 1000)));
    return new ServingError('RESOURCE_EXHAUSTED', text, { reason: 'too_many_buffered_bytes', retryAfterMs });
  }
}
