/**
 * Keeps the replies of one model version in the order in which its requests were accepted (`preserve_ordering`).
 * Invariant: a request's frames leave only when every request before it is closed.
 */
import type { PendingRequest } from './pending-request.js';

export class ReplyOrder {
  /** Accepted and not yet closed, oldest at `#head`. */
  #queue: (PendingRequest | undefined)[] = [];
  #head = 0;
  #advancing = false;

  open(pending: PendingRequest): void {
    this.#queue.push(pending);
  }

  isNext(pending: PendingRequest): boolean {
    return this.#queue[this.#head] === pending;
  }

  /** Drops closed requests from the front and releases what the next one held back, as far as that goes. */
  advance(): void {
    // Delivering may close further requests from inside a callback; the loop below sees them.
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      for (;;) {
        const next = this.#queue[this.#head];
        if (next === undefined) break;
        if (!next.closed) {
          next.release();
          if (!next.closed) break;
        }
        this.#queue[this.#head++] = undefined;
      }
    } finally {
      this.#advancing = false;
    }
    if (this.#head > 1024 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
  }
}
