/**
 * One histogram as plain numbers: adding costs a short search and two additions. Buckets follow Prometheus: a value equal to
 * a bound belongs to that bound's bucket, and exported counts are cumulative.
 */
import type { Labels, Series } from './scraped-metric.js';

export class BucketCounts {
  /** One count a bound, and a last one for what lies above all. */
  readonly #counts: Float64Array;
  #sum = 0;
  #count = 0;

  /** @param bounds ascending upper bounds. */
  constructor(private readonly bounds: readonly number[]) {
    this.#counts = new Float64Array(bounds.length + 1);
  }

  get count(): number {
    return this.#count;
  }

  /** Adds `times` observations of `value`. */
  add(value: number, times = 1): void {
    const { bounds } = this;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= bounds[middle]!) high = middle;
      else low = middle + 1;
    }
    this.#counts[low]! += times;
    this.#sum += value * times;
    this.#count += times;
  }

  /** The series of the histogram `name`; values and bounds are multiplied by `scale`, e.g. to seconds. */
  *series(name: string, labels: Labels, scale = 1): Iterable<Series> {
    let cumulative = 0;
    for (let i = 0; i < this.bounds.length; i += 1) {
      cumulative += this.#counts[i]!;
      yield {
        metricName: `${name}_bucket`,
        labels: { ...labels, le: String(Number((this.bounds[i]! * scale).toPrecision(12))) },
        value: cumulative,
      };
    }
    yield { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: this.#count };
    yield { metricName: `${name}_sum`, labels, value: this.#sum * scale };
    yield { metricName: `${name}_count`, labels, value: this.#count };
  }
}
