/**
 * What a batch takes of an instance's time beside its execution while more work waits: until its answers are out, what
 * came meanwhile is read, and the next batch has started. Where gateway and instances share a core that is no trifle.
 */

/** Weight of a new observation in the running mean. */
const WEIGHT = 1 / 16;

export class Turnaround {
  #lastUs = Number.NaN;
  #backlog = false;
  #us = 0;

  /** The mean of the last dozen or so, microseconds; 0 while nothing was observed. */
  get us(): number {
    return this.#us;
  }

  /**
   * A batch was completed after `executionUs` on one of `live` instances.
   * @param backlog enough waits for the next batch to be full, so that nothing but the turnaround delays it
   */
  observe(executionUs: number, backlog: boolean, live: number, nowUs: number): void {
    if (this.#backlog) this.#us += WEIGHT * (Math.max(0, (nowUs - this.#lastUs) * live - executionUs) - this.#us);
    this.#backlog = backlog;
    this.#lastUs = nowUs;
  }
}
