/**
 * The arithmetic of a latency objective: from the time a request came to the last moment at which it can still be
 * started, and how many rows may start with it. The deadline is arrival + objective - margin, where the margin is what a
 * reply was seen to take beside the execution. An objective that even a lone request on an idle server would miss binds
 * nothing: refusing everything would serve nobody. After Symphony (arXiv 2308.07470) and Clockwork (OSDI'20).
 */
import type { BatchProfile } from './profile.js';

/** Observations of the margin whose worst is planned with. */
const MARGIN_RUNS = 10;
/** The share of the objective that the margin may take, so that one stall does not make every request look hopeless. */
const MARGIN_SHARE = 0.25;
/** What a timer may be late, microseconds: no start is planned later than this before the latest one. */
const TIMER_SLACK_US = 1200;
/** A batch that reaches this share of the best rate is good enough. */
const GOOD_RATE = 0.97;

export class Objective {
  readonly #margins = new Float64Array(MARGIN_RUNS);
  #next = 0;
  #marginUs = 0;

  /** @param objectiveUs from arrival to reply, microseconds; above 0 */
  constructor(readonly objectiveUs: number) {}

  /** From arrival to the end of the execution, microseconds. */
  get budgetUs(): number {
    return this.objectiveUs - this.#marginUs;
  }

  /** A batch took `us` from its start to its completion beside its execution. */
  recordOverhead(us: number): void {
    this.#margins[this.#next] = us;
    this.#next = (this.#next + 1) % MARGIN_RUNS;
    this.#marginUs = Math.min(MARGIN_SHARE * this.objectiveUs, Math.max(...this.#margins));
  }

  /** Whether the objective can be met at all by a request of `rows` rows, as far as is known. */
  binds(profile: BatchProfile, rows: number): boolean {
    return (profile.plannedUs(rows) ?? Infinity) <= this.budgetUs;
  }

  /** When a request must start at the latest even if nothing goes wrong, microseconds; Infinity where nothing binds. */
  latestStartUs(profile: BatchProfile, rows: number, arrivedUs: number): number {
    return this.binds(profile, rows) ? arrivedUs + this.budgetUs - (profile.expectedUs(rows) as number) : Infinity;
  }

  /**
   * The most rows, up to `most`, that can be executed in `slackUs` even if they take long; 0 = not one. Assumes that more
   * rows take longer, and errs on the side of fewer where they do not.
   */
  rowsWithin(slackUs: number, profile: BatchProfile, most: number): number {
    if ((profile.likelyUs(most) ?? 0) <= slackUs) return most;
    let fits = 0;
    let fails = most;
    while (fails - fits > 1) {
      const middle = (fits + fails) >> 1;
      if ((profile.likelyUs(middle) as number) <= slackUs) fits = middle;
      else fails = middle;
    }
    return fits;
  }

  /**
   * Rows at which waiting for more must end: requests that come just after the start must be in time with the next batch.
   */
  targetRows(profile: BatchProfile, fullRows: number): number {
    return Math.max(1, this.rowsWithin(this.budgetUs / 2, profile, fullRows));
  }

  /**
   * When the window opens in which a batch with that deadline should start: before, one more request could still join it;
   * after, none can. In microseconds.
   */
  windowUs(profile: BatchProfile, deadlineUs: number, grownRows: number): number {
    return deadlineUs - (profile.plannedUs(grownRows) ?? Infinity) - TIMER_SLACK_US;
  }

  /**
   * How many requests at the head of a queue to give up so that the batch behind them need not be small: a batch that is
   * cut short by the deadline of its oldest member costs everybody behind it. None where the batch is good enough, where
   * it keeps up with what arrives, or where giving up does not help.
   * @param heads rows and arrival of the waiting requests, in order
   * @param neededRate rows a microsecond that arrive for one instance
   */
  sacrifice(
    heads: Iterable<{ readonly rows: number; readonly arrivedUs: number }>,
    waitingRows: number,
    fullRows: number,
    profile: BatchProfile,
    neededRate: number,
    nowUs: number,
  ): number {
    const goodRate = Math.min(neededRate, GOOD_RATE * rateOf(profile, fullRows));
    const goodRows = smallest(fullRows, (rows) => rateOf(profile, rows) >= goodRate);
    const goodUs = profile.likelyUs(goodRows) ?? 0;
    let given = 0;
    let rows = waitingRows;
    let fitsAtOnce = 0;
    for (const head of heads) {
      const slackUs = head.arrivedUs + this.budgetUs - nowUs;
      const neededUs = rows >= goodRows ? goodUs : (profile.likelyUs(rows) ?? 0);
      if (slackUs >= neededUs) return Math.min(fullRows, rows) > fitsAtOnce ? given : 0;
      if (given === 0) fitsAtOnce = this.rowsWithin(slackUs, profile, Math.min(fullRows, rows));
      given += 1;
      rows -= head.rows;
    }
    return 0;
  }

  /**
   * When a request that comes now would be answered if all batches before its own were full, and its own as well.
   * @param aheadRows waiting before it
   * @param freeUs when an instance is free
   * @param turnaroundUs what a batch takes of an instance beside its execution
   */
  answeredUs(profile: BatchProfile, aheadRows: number, fullRows: number, live: number, freeUs: number, turnaroundUs: number): number {
    const fullUs = (profile.meanUs(fullRows) as number) + turnaroundUs;
    const batches = Math.floor(aheadRows / fullRows);
    const ownRows = batches === 0 ? aheadRows + 1 : fullRows;
    return freeUs + turnaroundUs + (batches * fullUs) / live + (profile.likelyUs(ownRows) as number);
  }
}

/** The least of 1..most for which `enough` holds, given that it then holds for all larger ones; `most` where it never does. */
function smallest(most: number, enough: (rows: number) => boolean): number {
  let fails = 0;
  let holds = most;
  while (holds - fails > 1) {
    const middle = (fails + holds) >> 1;
    if (enough(middle)) holds = middle;
    else fails = middle;
  }
  return holds;
}

/** Rows a microsecond. */
export function rateOf(profile: BatchProfile, rows: number): number {
  return rows / (profile.expectedUs(rows) ?? Infinity);
}
