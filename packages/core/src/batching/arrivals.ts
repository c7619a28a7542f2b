/**
 * How fast requests are coming right now. Owns the shape of the current burst (arrivals no more than a millisecond apart)
 * and what the last one looked like, because the first arrivals of a burst say little about its pace; and how soon clients
 * come back after many of them were answered at once, which is what makes bursts in the first place.
 */

/** A longer silence ends a burst, microseconds. */
const BURST_SILENCE_US = 1000;
/** Arrivals a burst must have had before its pace predicts that of the next; answers that make a burst likely. */
const MEANINGFUL_BURST = 4;
/** A burst that ended longer ago predicts nothing, microseconds. */
const MEMORY_US = 50_000;
/** A gap so many times the expected one means that the burst is over. */
const PATIENCE = 4;
/** One turn of an event loop that reads many sockets, microseconds: silence shorter than this proves nothing. */
const TURN_US = 50;
/** Time from answers to the first request after them while none was seen, microseconds, and the weight of a new one. */
const FIRST_RETURN_US = 200;
const RETURN_WEIGHT = 0.25;

export class Arrivals {
  #lastUs = -Infinity;
  #startUs = 0;
  #count = 0;
  /** Of the last burst worth the name, and when it ended. */
  #previousGapUs = Infinity;
  #previousEndUs = -Infinity;
  /** When many clients were last answered, if none of them has come back yet. */
  #answeredUs = -Infinity;
  #returnUs = FIRST_RETURN_US;

  record(nowUs: number): void {
    const silenceUs = nowUs - this.#lastUs;
    if (silenceUs > BURST_SILENCE_US) {
      // A few stragglers do not make the pace of the burst before them forgotten.
      if (this.#count >= MEANINGFUL_BURST) {
        this.#previousGapUs = this.#meanGapUs();
        this.#previousEndUs = this.#lastUs;
      }
      if (nowUs - this.#previousEndUs > MEMORY_US) this.#previousGapUs = Infinity;
      this.#startUs = nowUs;
      this.#count = 0;
    } else if (this.#count >= 256) {
      // A burst without end is a steady stream: forget its first half, so that the pace is a recent one.
      this.#startUs = nowUs - (nowUs - this.#startUs) / 2;
      this.#count = 128;
    }
    if (this.#answeredUs !== -Infinity) {
      this.#returnUs += RETURN_WEIGHT * (Math.min(nowUs - this.#answeredUs, BURST_SILENCE_US) - this.#returnUs);
      this.#answeredUs = -Infinity;
    }
    this.#count += 1;
    this.#lastUs = nowUs;
  }

  /** So many requests were answered now. */
  answered(requests: number, nowUs: number): void {
    if (requests >= MEANINGFUL_BURST) this.#answeredUs = nowUs;
  }

  /** Expected time between two arrivals of the burst that is on or due, microseconds; Infinity where none is in sight. */
  gapUs(): number {
    return this.#count >= MEANINGFUL_BURST ? this.#meanGapUs() : this.#previousGapUs;
  }

  /** When the next arrival is expected, microseconds. */
  nextUs(nowUs: number): number {
    return this.#answeredUs === -Infinity ? nowUs + this.gapUs() : Math.max(nowUs, this.#answeredUs + this.#returnUs);
  }

  /** If nothing arrives until then the burst is over, microseconds. */
  overUs(): number {
    const quietUs = this.#lastUs + PATIENCE * this.gapUs();
    return TURN_US + (this.#answeredUs === -Infinity ? quietUs : Math.max(quietUs, this.#answeredUs + 2 * this.#returnUs));
  }

  #meanGapUs(): number {
    return (this.#lastUs - this.#startUs) / (this.#count - 1);
  }
}
