/** Seeded choices: everything a generated test does follows from its seed, so that a failing case can be repeated alone. */

/** Draws from one stream of numbers (mulberry32, public domain). */
export class Draw {
  #state: number;

  /** @param index which of the streams of `seed`: each generated case has its own. */
  constructor(seed: number, index = 0) {
    this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)) | 0;
  }

  /** In [0, 1). */
  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number in `from`..`to`, both included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.unit() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  /** @param items at least one */
  pick<T>(items: readonly T[]): T {
    return items[this.int(0, items.length - 1)]!;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.int(0, 255)));
  }
}
