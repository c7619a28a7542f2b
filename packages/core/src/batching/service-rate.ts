/** How many requests a lane gets through, observed at completions: from it comes the Retry-After of a refusal. */

/** Weight of a new observation in the running mean. */
const WEIGHT = 0.2;
/** Answer while nothing was observed, and bounds of every answer, milliseconds. */
const UNKNOWN_MS = 1000;
const MIN_MS = 1;
const MAX_MS = 60_000;

export class ServiceRate {
  #usPerRequest = 0;
  #lastUs = Number.NaN;

  /** `requests` were completed now; `busy` = others were waiting the whole time since the last completion. */
  observe(requests: number, busy: boolean, nowUs: number): void {
    if (busy && nowUs > this.#lastUs && requests > 0) {
      const sample = (nowUs - this.#lastUs) / requests;
      this.#usPerRequest = this.#usPerRequest === 0 ? sample : this.#usPerRequest + WEIGHT * (sample - this.#usPerRequest);
    }
    this.#lastUs = nowUs;
  }

  /** When `waiting` requests will have been served, milliseconds from now, in 1..60000. */
  drainMs(waiting: number): number {
    if (this.#usPerRequest === 0) return UNKNOWN_MS;
    return Math.min(MAX_MS, Math.max(MIN_MS, Math.ceil((waiting * this.#usPerRequest) / 1000)));
  }
}
