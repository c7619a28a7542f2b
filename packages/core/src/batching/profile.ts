/**
 * What a model's batches of each size were measured to cost, and from it the *peak*: the number of rows beyond which a
 * bigger batch no longer brings more rows a second. Sizes are kept in half-octave classes (1, 2, 3, 4, 6, 8, 12, ...), the
 * last 32 runs of each. Throughput decisions take the faster half of them (neighbours on the machine only ever add time),
 * latency decisions the worst run.
 *
 * How the peak is found: nothing is cut before it was measured, so a new model batches as its configuration says. Once
 * the largest size seen has three runs (one, if that was hopeless), each power of two below it, down to 8, is tried for as
 * many: rates are not unimodal in practice. Below 8 only when 8 is clearly better than the largest size.
 * Every 200 runs a neighbour of the peak is tried again, the larger one every 8 while enough work waits for it. Batches of a model whose maximum is 8 or less are cut
 * only when ordinary traffic has shown smaller ones to be clearly better.
 */
import { CostLine, LatencySpread, type SizeReading } from './latency.js';
import { classOf } from './size-class.js';

const KEPT_RUNS = 32;
/** Runs a size must have before it is compared. */
const ENOUGH_RUNS = 3;
/** ... or fewer, when it is at once so many times as slow a row as a smaller size that more runs would not save it. */
const HOPELESS = 1.5;
/** A smaller size is preferred when it loses at most this share of the best rate. */
const TOLERANCE = 0.03;
/** No size below this is preferred for being merely as good: each batch also costs the server a fixed effort. */
const FLOOR_ROWS = 8;
/** ... only for being better by this share, over this many runs. */
const CLEAR_GAIN = 0.1;
const CLEAR_RUNS = 8;
const FIRST_RUNS = 2;
const REEXPLORE_RUNS = 200;
/** ... upwards sooner while there is work for it: cutting too small is a mistake that a backlog makes worse. */
const REEXPLORE_UP_RUNS = 8;
/** What a batch costs beside its execution (decision, messages, bookkeeping), microseconds. */
const BATCH_OVERHEAD_US = 150;

interface SizeClass {
  /** Ring of microseconds per row. */
  readonly runs: Float64Array;
  /** Ring of the rows of the same runs, and their mean. */
  readonly rows: Float64Array;
  meanRows: number;
  count: number;
  next: number;
  /** Mean of the faster half of `runs`, microseconds per row. */
  typical: number;
  worst: number;
}

/** A size at which batches may be cut. */
interface Rung {
  readonly rows: number;
  readonly index: number;
}

export class BatchProfile {
  readonly #classes: (SizeClass | undefined)[] = [];
  /** Powers of two up to the maximum, and the maximum. */
  readonly #ladder: Rung[] = [];
  /** Position of the peak in the ladder; -1 = nothing measured. */
  #peak = -1;
  /** Position of the largest size with enough runs. */
  #top = -1;
  #runs = 0;
  #explored = 0;
  #exploreUp = false;
  #exploredAbove = 0;
  readonly #spread = new LatencySpread();
  readonly #line = new CostLine();

  /** @param maxRows the largest batch, at least 1 */
  constructor(readonly maxRows: number) {
    for (let rows = 1; rows <= maxRows; rows *= 2) this.#ladder.push({ rows, index: classOf(rows) });
    if (this.#ladder.at(-1)?.rows !== maxRows) this.#ladder.push({ rows: maxRows, index: classOf(maxRows) });
  }

  /** Rows beyond which the rate was not seen to grow; undefined while that is unknown. */
  get peakRows(): number | undefined {
    return this.#peak < 0 || this.#peak === this.#top ? undefined : (this.#ladder[this.#peak] as Rung).rows;
  }

  /** Batches recorded. */
  get runs(): number {
    return this.#runs;
  }

  /** A batch of `rows` took `us` microseconds of an instance's time. */
  record(rows: number, us: number): void {
    if (rows < 1 || !(us > 0)) return;
    const index = classOf(rows);
    const size = (this.#classes[index] ??= {
      runs: new Float64Array(KEPT_RUNS),
      rows: new Float64Array(KEPT_RUNS),
      meanRows: 0,
      count: 0,
      next: 0,
      typical: 0,
      worst: 0,
    });
    size.runs[size.next] = us / rows;
    size.rows[size.next] = rows;
    size.next = (size.next + 1) % KEPT_RUNS;
    if (size.count < KEPT_RUNS) size.count += 1;
    const sorted = size.runs.slice(0, size.count).sort();
    const half = (size.count + 1) >> 1;
    size.typical = sorted.slice(0, half).reduce((sum, n) => sum + n, 0) / half;
    size.worst = sorted[size.count - 1] as number;
    size.meanRows = size.rows.reduce((sum, n) => sum + n, 0) / size.count;
    this.#runs += 1;
    this.#line.record(rows, us);
    this.#spread.record(rows, us, this.expectedUs(rows) as number);
    const peak = this.#ladder[this.#peak];
    if (peak && index > peak.index) this.#exploredAbove = this.#runs;
    if (peak && peak.index !== index && this.#ladder.some((rung) => rung.index === index)) {
      this.#explored = this.#runs;
      this.#exploreUp = index < peak.index;
    }
    this.#findPeak();
  }

  /**
   * Rows at which a batch is to be cut when `available` rows wait: the peak, now and then a neighbour that wants
   * measuring, or `maxRows` where nothing is known against it.
   */
  limit(available: number): number {
    const peak = this.#ladder[this.#peak];
    if (!peak) return this.maxRows;
    const unexplored = this.#unexplored(available);
    if (unexplored) return unexplored.rows;
    if (this.#peak === this.#top) return this.maxRows;
    const above = this.#ladder[this.#peak + 1] as Rung;
    if (available >= above.rows && this.#count(above) > 0 && this.#runs - this.#exploredAbove >= REEXPLORE_UP_RUNS) return above.rows;
    if (this.#runs - this.#explored >= REEXPLORE_RUNS) {
      const upper = this.#ladder[this.#peak + 1] as Rung;
      const lower = this.#ladder[this.#peak - 1];
      if (this.#exploreUp && available >= upper.rows) return upper.rows;
      if (lower && lower.rows >= FLOOR_ROWS) return lower.rows;
      if (available >= upper.rows) return upper.rows;
    }
    return peak.rows;
  }

  /**
   * What a batch of `rows` ought to take, microseconds: on the line between the nearest measured sizes, so that the
   * difference of two sizes is what further rows cost. Undefined while nothing was measured.
   */
  expectedUs(rows: number): number | undefined {
    let low: SizeClass | undefined;
    let lower: SizeClass | undefined;
    let high: SizeClass | undefined;
    for (const size of this.#classes) {
      if (!size) continue;
      if (size.meanRows <= rows) {
        lower = low;
        low = size;
      } else if (!high) high = size;
    }
    if (!low) return high ? high.typical * high.meanRows : undefined;
    const lowUs = low.typical * low.meanRows;
    if (high) return lowUs + slope(low, high) * (rows - low.meanRows);
    return lower ? Math.max(lowUs, lowUs + slope(lower, low) * (rows - low.meanRows)) : low.typical * rows;
  }

  /** The worst of the last runs at that size, microseconds; the expected time where the size was never run. */
  worstUs(rows: number): number | undefined {
    const own = this.#classes[classOf(rows)];
    return own ? own.worst * rows : this.expectedUs(rows);
  }

  /** What a batch of `rows` is to be planned with where a deadline depends on it, microseconds; see latency.ts. */
  plannedUs(rows: number): number | undefined {
    const us = this.#spread.known ? this.expectedUs(rows) : undefined;
    return us === undefined ? undefined : us * this.#spread.worstRatio(rows);
  }

  /** The mean time of a batch of `rows`, microseconds: for sums over several. Undefined while nothing was measured. */
  meanUs(rows: number): number | undefined {
    const us = this.expectedUs(rows);
    return us === undefined ? undefined : us * this.#spread.meanRatio;
  }

  /**
   * What most batches of `rows` take at most, microseconds, a third of the way from the median to the worst: to judge what
   * is too late. Judged by the worst, requests would be refused that as a rule make it. Undefined while that is unknown.
   */
  likelyUs(rows: number): number | undefined {
    const us = this.#spread.known ? this.expectedUs(rows) : undefined;
    return us === undefined ? undefined : (us * (2 * this.#spread.medianRatio + this.#spread.worstRatio(rows))) / 3;
  }

  /** Whether the runs of one size take so nearly the same time that a start may be planned to the last moment. */
  get steady(): boolean {
    return this.#spread.steady;
  }

  /** Share of the time per row that a batch of `grown` rows would save over one of `rows`, near the sizes that run now. */
  saving(rows: number, grown: number): number {
    const saving = this.#line.saving(rows, grown);
    if (saving !== undefined) return saving;
    const us = this.expectedUs(rows);
    return us === undefined ? 0 : 1 - ((this.expectedUs(grown) as number) * rows) / (us * grown);
  }

  /** What was measured, ascending by size. */
  readings(): SizeReading[] {
    return this.#spread.readings();
  }

  /** The next size that is to be tried and that `available` rows can fill. */
  #unexplored(available: number): Rung | undefined {
    const peak = this.#ladder[this.#peak] as Rung;
    const top = this.#ladder[this.#top] as Rung;
    const falls = top.rows > FLOOR_ROWS && peak.rows <= FLOOR_ROWS && this.#rate(peak) > (1 + CLEAR_GAIN) * this.#rate(top);
    for (let i = this.#top - 1; i >= 0; i--) {
      const rung = this.#ladder[i] as Rung;
      if (rung.rows < FLOOR_ROWS && !falls) return undefined;
      const known = rung.rows < FLOOR_ROWS ? this.#judged(rung, peak) : this.#measured(rung);
      if (rung.rows < available && !known) return rung;
    }
    return undefined;
  }

  /** Whether enough is known of a size to compare it. */
  #measured(rung: Rung): boolean {
    const size = this.#classes[rung.index];
    if (!size || size.count >= ENOUGH_RUNS) return size !== undefined;
    for (let i = 0; i < rung.index; i++) {
      const smaller = this.#classes[i];
      if (smaller && size.typical > HOPELESS * smaller.typical) return true;
    }
    return false;
  }

  /** Whether a size below the floor had its chance: few runs are enough for one that shows no sign of being better. */
  #judged(rung: Rung, peak: Rung): boolean {
    const count = this.#count(rung);
    return count >= CLEAR_RUNS || (count >= FIRST_RUNS && this.#rate(rung) < this.#rate(peak));
  }

  #count(rung: Rung): number {
    return this.#classes[rung.index]?.count ?? 0;
  }

  /** Rows a microsecond. */
  #rate(rung: Rung): number {
    return 1 / ((this.#classes[rung.index] as SizeClass).typical + BATCH_OVERHEAD_US / rung.rows);
  }

  #findPeak(): void {
    let best = -1;
    let top = -1;
    for (let i = 0; i < this.#ladder.length; i++) {
      const rung = this.#ladder[i] as Rung;
      if (!this.#measured(rung)) continue;
      top = i;
      if (rung.rows < FLOOR_ROWS && this.#count(rung) < CLEAR_RUNS) continue;
      if (best < 0 || this.#rate(rung) > this.#rate(this.#ladder[best] as Rung)) best = i;
    }
    this.#top = top;
    if (best < 0) best = top;
    if (best >= 0) best = this.#preferSmaller(this.#raiseToFloor(best, top));
    this.#peak = best;
  }

  /** A best size under the floor counts only when it beats every measured size from the floor up clearly. */
  #raiseToFloor(best: number, top: number): number {
    const rung = this.#ladder[best] as Rung;
    if (rung.rows >= FLOOR_ROWS) return best;
    let rival = -1;
    for (let i = best + 1; i <= top; i++) {
      const other = this.#ladder[i] as Rung;
      if (other.rows < FLOOR_ROWS && i < top) continue;
      if (!this.#measured(other)) continue;
      if (rival < 0 || this.#rate(other) > this.#rate(this.#ladder[rival] as Rung)) rival = i;
    }
    if (rival < 0) return top;
    return this.#rate(rung) > (1 + CLEAR_GAIN) * this.#rate(this.#ladder[rival] as Rung) ? best : rival;
  }

  #preferSmaller(best: number): number {
    const enough = (1 - TOLERANCE) * this.#rate(this.#ladder[best] as Rung);
    for (let i = 0; i < best; i++) {
      const rung = this.#ladder[i] as Rung;
      if (rung.rows >= FLOOR_ROWS && this.#measured(rung) && this.#rate(rung) >= enough) return i;
    }
    return best;
  }
}

/** Microseconds that each row more costs between two sizes. */
function slope(from: SizeClass, to: SizeClass): number {
  return (to.typical * to.meanRows - from.typical * from.meanRows) / (to.meanRows - from.meanRows);
}
