/**
 * How long batches may be planned to take. Where throughput asks for the typical time of a size (profile.ts), a deadline
 * asks for the worst: the worst of the last 10 runs, never the mean (Clockwork, OSDI'20). Each run is kept as its ratio to
 * what its size typically takes, so that the runs of one size also say how far those of its neighbours may stray; and as
 * it was, for those who want to read the profile.
 */
import { classOf } from './size-class.js';

/** Runs whose worst is planned with. */
const PLANNED_RUNS = 10;
/** Runs of every size from which the spread is read, and the fewest that say something. */
const SPREAD_RUNS = 64;
const ENOUGH_RUNS = 3;
/** Above this ratio of the 99th percentile to the median, nothing may be planned to the last moment. */
const STEADY_SPREAD = 1.3;

/** Weight that the runs before keep with each new one in the line of cost. */
const LINE_MEMORY = 0.97;

/** What the last runs of one size took. */
export interface SizeReading {
  /** Mean rows of the runs. */
  readonly rows: number;
  readonly medianUs: number;
  readonly worstUs: number;
  readonly rowsPerSecond: number;
}

interface SizeRuns {
  /** Rings of the same runs. */
  readonly us: Float64Array;
  readonly rows: Float64Array;
  readonly ratios: Float64Array;
  count: number;
  next: number;
  worstRatio: number;
}

/**
 * The straight line through the last few dozen runs: time = fixed + rows x perRow. Only near the sizes that run now, but
 * steadier than any two of them, which is what small differences need.
 */
export class CostLine {
  #weight = 0;
  #rows = 0;
  #us = 0;
  #rowsRows = 0;
  #rowsUs = 0;

  record(rows: number, us: number): void {
    this.#weight = LINE_MEMORY * this.#weight + 1;
    this.#rows = LINE_MEMORY * this.#rows + rows;
    this.#us = LINE_MEMORY * this.#us + us;
    this.#rowsRows = LINE_MEMORY * this.#rowsRows + rows * rows;
    this.#rowsUs = LINE_MEMORY * this.#rowsUs + rows * us;
  }

  /** Share of the time per row that a batch of `grown` rows saves over one of `rows`, 0..1; undefined while sizes do not vary. */
  saving(rows: number, grown: number): number | undefined {
    const spread = this.#weight * this.#rowsRows - this.#rows * this.#rows;
    if (!(spread > 1e-6 * this.#weight * this.#rowsRows)) return undefined;
    const perRow = Math.max(0, (this.#weight * this.#rowsUs - this.#rows * this.#us) / spread);
    const fixed = Math.max(0, (this.#us - perRow * this.#rows) / this.#weight);
    return fixed + perRow > 0 ? 1 - (perRow + fixed / grown) / (perRow + fixed / rows) : 0;
  }
}

export class LatencySpread {
  readonly #sizes: (SizeRuns | undefined)[] = [];
  readonly #ratios = new Float64Array(SPREAD_RUNS);
  #count = 0;
  #next = 0;
  /** Of the last {@link PLANNED_RUNS} runs, whatever their size. */
  #worstRatio = 1;
  #spread = 1;
  #medianRatio = 1;
  #meanRatio = 1;

  /** Whether enough runs were seen to plan with. */
  get known(): boolean {
    return this.#count >= ENOUGH_RUNS;
  }

  /** Whether runs of one size take so nearly the same time that a batch may wait until its latest start. */
  get steady(): boolean {
    return this.known && this.#spread <= STEADY_SPREAD;
  }

  /** The worst of the last runs of that size, and of the last runs at all, as a multiple of the typical time. */
  worstRatio(rows: number): number {
    return Math.max(1, this.#worstRatio, this.#sizes[classOf(rows)]?.worstRatio ?? 1);
  }

  /** The mean run, as a multiple of the typical time. */
  get meanRatio(): number {
    return this.#meanRatio;
  }

  /** The median run, as a multiple of the typical time: that is the mean of the faster half. */
  get medianRatio(): number {
    return this.#medianRatio;
  }

  /** @param typicalUs what a batch of that size ought to have taken */
  record(rows: number, us: number, typicalUs: number): void {
    const ratio = us / typicalUs;
    const size = (this.#sizes[classOf(rows)] ??= {
      us: new Float64Array(PLANNED_RUNS),
      rows: new Float64Array(PLANNED_RUNS),
      ratios: new Float64Array(PLANNED_RUNS),
      count: 0,
      next: 0,
      worstRatio: 1,
    });
    size.us[size.next] = us;
    size.rows[size.next] = rows;
    size.ratios[size.next] = ratio;
    size.next = (size.next + 1) % PLANNED_RUNS;
    size.count = Math.min(PLANNED_RUNS, size.count + 1);
    size.worstRatio = 0;
    for (let i = 0; i < size.count; i++) size.worstRatio = Math.max(size.worstRatio, size.ratios[i] as number);
    this.#ratios[this.#next] = ratio;
    this.#next = (this.#next + 1) % SPREAD_RUNS;
    this.#count = Math.min(SPREAD_RUNS, this.#count + 1);
    this.#worstRatio = 0;
    for (let back = 1; back <= Math.min(PLANNED_RUNS, this.#count); back++) {
      this.#worstRatio = Math.max(this.#worstRatio, this.#ratios[(this.#next - back + SPREAD_RUNS) % SPREAD_RUNS] as number);
    }
    const sorted = this.#ratios.slice(0, this.#count).sort();
    this.#meanRatio = sorted.reduce((sum, r) => sum + r, 0) / this.#count;
    this.#medianRatio = sorted[this.#count >> 1] as number;
    this.#spread = (sorted[Math.floor(0.99 * (this.#count - 1))] as number) / this.#medianRatio;
  }

  /** Ascending by size; sizes that never ran are left out. */
  readings(): SizeReading[] {
    const readings: SizeReading[] = [];
    for (const size of this.#sizes) {
      if (!size) continue;
      const us = size.us.slice(0, size.count).sort();
      const rows = size.rows.slice(0, size.count).reduce((sum, n) => sum + n, 0);
      const totalUs = us.reduce((sum, n) => sum + n, 0);
      readings.push({
        rows: rows / size.count,
        medianUs: us[size.count >> 1] as number,
        worstUs: us[size.count - 1] as number,
        rowsPerSecond: (rows / totalUs) * 1e6,
      });
    }
    return readings;
  }
}
