/**
 * When to start an instance again: 100 ms after its first fall, twice as long after each further one, at most 10 s. A
 * while in service makes the next fall the first again: only what falls soon after each start must not spin.
 */
const FIRST_US = 100_000;
const LONGEST_US = 10_000_000;
/** A fall after this long in service counts as the first. */
const FORGIVEN_AFTER_US = 5_000_000;

export class Backoff {
  #nextUs = FIRST_US;
  #upSinceUs: number | undefined;

  /** It is in service. */
  up(nowUs: number): void {
    this.#upSinceUs = nowUs;
  }

  /** It fell, or did not come up. @returns microseconds to wait before the next try */
  down(nowUs: number): number {
    if (this.#upSinceUs !== undefined && nowUs - this.#upSinceUs >= FORGIVEN_AFTER_US) this.#nextUs = FIRST_US;
    this.#upSinceUs = undefined;
    const delayUs = this.#nextUs;
    this.#nextUs = Math.min(LONGEST_US, 2 * delayUs);
    return delayUs;
  }
}
