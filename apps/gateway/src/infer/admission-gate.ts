/**
 * Caps what this gateway keeps unanswered. Invariant: counts and bytes are what was admitted minus what was released.
 * A refusal says when trying again makes sense: the time that recent requests took.
 */
import { ServingError } from '@paceline/protocol';

export interface AdmissionLimits {
  /** Requests accepted and not yet answered. */
  readonly maxUnanswered: number;
  /** Their input tensors, in bytes. */
  readonly maxUnansweredBytes: number;
}

export class AdmissionGate {
  #requests = 0;
  #bytes = 0;
  /** Moving average, microseconds from admission to answer. */
  #answerUs = 0;

  constructor(private readonly limits: AdmissionLimits) {}

  /** @throws ServingError RESOURCE_EXHAUSTED when a cap would be passed; nothing is counted then. */
  admit(bytes: number, prefix: string): void {
    if (this.#requests >= this.limits.maxUnanswered) {
      throw this.#refusal(`${prefix}${this.#requests} requests are unanswered, the limit of this server`, 'too_many_unanswered');
    }
    if (this.#bytes + bytes > this.limits.maxUnansweredBytes) {
      throw this.#refusal(
        `${prefix}inputs of ${bytes} bytes do not fit beside the ${this.#bytes} bytes of unanswered requests, the limit of this server is ${this.limits.maxUnansweredBytes}`,
        'too_many_unanswered_bytes',
      );
    }
    this.#requests += 1;
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#requests -= 1;
    this.#bytes -= bytes;
  }

  /** A request was answered after `totalUs`. */
  observe(totalUs: number): void {
    this.#answerUs += (totalUs - this.#answerUs) / 16;
  }

  #refusal(text: string, reason: string): ServingError {
    return new ServingError('RESOURCE_EXHAUSTED', text, { reason, retryAfterMs: Math.max(1, Math.ceil(this.#answerUs / 1000)) });
  }
}
