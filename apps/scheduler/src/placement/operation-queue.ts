/** Runs the operations on one model one after the other, in the order they were asked for, and those of different models side by side. */
export class OperationQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `operation` after all earlier ones of `key` have settled. Its failure is its own. */
  run<T>(key: string, operation: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const result = before.then(operation, operation);
    const settled = result.catch(() => undefined);
    this.#last.set(key, settled);
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    return result;
  }
}

/** At most `limit` tasks at a time; the others wait in order. */
export class Limiter {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#free = Math.max(1, limit);
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      // The place goes straight to the next one, so that nobody can take it in between.
      if (next) next();
      else this.#free += 1;
    }
  }
}
