/**
 * How many bytes of large messages may be on their way into this process at once, over all its links. A transfer that
 * finds no room waits for its turn, in order; only one that could never fit is refused. What is granted is given back when
 * the message is whole or its connection is gone.
 */
export class ReceiveBudget {
  #usedBytes = 0;
  readonly #waiting = new Set<Waiting>();

  constructor(private readonly limitBytes: number) {}

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Whether it could fit at all. */
  fits(bytes: number): boolean {
    return bytes <= this.limitBytes;
  }

  /** Calls `granted` now or later. @returns cancels the wait, or gives the bytes back; harmless when called twice */
  take(bytes: number, granted: () => void): () => void {
    const waiting = { bytes, granted };
    this.#waiting.add(waiting);
    let taken = false;
    let over = false;
    waiting.granted = () => {
      taken = true;
      granted();
    };
    this.#serve();
    return () => {
      if (over) return;
      over = true;
      this.#waiting.delete(waiting);
      if (taken) this.#usedBytes -= bytes;
      this.#serve();
    };
  }

  #serve(): void {
    for (const next of this.#waiting) {
      if (this.#usedBytes + next.bytes > this.limitBytes) return;
      this.#waiting.delete(next);
      this.#usedBytes += next.bytes;
      next.granted();
    }
  }
}

interface Waiting {
  readonly bytes: number;
  granted: () => void;
}
