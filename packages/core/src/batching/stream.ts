/**
 * Whether requests come as a stream that goes on, whoever is answered, and how fast. Clients that send only after their
 * last answer look the same for a while, but once all of them wait nobody else can come: so the most requests that were
 * in the lane at once, lately, tells whether more are to be expected now.
 */

/** Weight of a new gap in the running mean, once that many have been seen. */
const WEIGHT = 1 / 32;
/** Batches after which the most requests at once are forgotten, in two steps. */
const MEMORY_BATCHES = 16;
/** More are expected while no more than this share of the most are waiting. */
const ROOM = 0.75;
/** A silence so many times the mean gap ends the stream. */
const PATIENCE = 4;
/** A silence counts no more than this, microseconds: after a night, a stream is recognised at once. */
const MAX_GAP_US = 1_000_000;

export class Stream {
  #lastUs = Number.NaN;
  #gapUs = Infinity;
  #count = 0;
  #most = 0;
  #mostBefore = 0;
  #batches = 0;

  record(nowUs: number): void {
    const silenceUs = Math.min(MAX_GAP_US, nowUs - this.#lastUs);
    this.#lastUs = nowUs;
    if (!(silenceUs >= 0)) return;
    this.#count += 1;
    if (this.#count === 1) this.#gapUs = silenceUs;
    else this.#gapUs += Math.max(WEIGHT, 1 / this.#count) * (silenceUs - this.#gapUs);
  }

  /** A batch of `requests` was answered while `waiting` others waited. */
  answered(requests: number, waiting: number): void {
    if (++this.#batches >= MEMORY_BATCHES) {
      this.#batches = 0;
      this.#mostBefore = this.#most;
      this.#most = 0;
    }
    if (requests + waiting > this.#most) this.#most = requests + waiting;
  }

  /** Mean time between two requests, microseconds; Infinity where no further one is to be expected. */
  gapUs(waiting: number): number {
    return waiting <= ROOM * Math.max(this.#most, this.#mostBefore) ? this.#gapUs : Infinity;
  }

  /** If nothing arrives until then, do not count on the stream, microseconds. */
  overUs(): number {
    return this.#lastUs + PATIENCE * this.#gapUs;
  }
}
