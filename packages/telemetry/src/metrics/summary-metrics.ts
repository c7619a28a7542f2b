/**
 * Triton's summaries (`--metrics-config=summary_latencies=true`): quantiles of the last minute for each stage of a request.
 * Each stage keeps a digest for every twelfth second of that minute; an observation goes to the newest, a scrape joins all.
 */
import type { Registry } from 'prom-client';
import { TDigest } from 'tdigest';
import type { ModelStatistics, StageDurations, StatisticsObserver } from '../statistics.js';
import type { LabelledModels } from './model-labels.js';
import { ScrapedMetric, type Labels, type Series } from './scraped-metric.js';

const WINDOWS = 5;
const WINDOW_MS = 12_000;
/** The largest share of all observations that one point of a digest may stand for; smaller is more exact and costs more. */
const DIGEST_DELTA = 0.005;

/** How far the rank of a reported quantile may be from the wanted one: a request for less cannot be met. */
export const SMALLEST_QUANTILE_ERROR = 0.001;

/** Quantiles of what was observed in the last 48 to 60 s, and the sum and count of everything. */
export class WindowedQuantiles {
  #digests = [new TDigest(DIGEST_DELTA)];
  #newestSinceMs: number;
  #sum = 0;
  #count = 0;

  constructor(nowMs: number) {
    this.#newestSinceMs = nowMs;
  }

  add(value: number, nowMs: number): void {
    this.#rotate(nowMs);
    this.#digests.at(-1)!.push(value);
    this.#sum += value;
    this.#count += 1;
  }

  /** NaN for each quantile while the last minute saw nothing. */
  *series(name: string, labels: Labels, quantiles: readonly number[], nowMs: number): Iterable<Series> {
    this.#rotate(nowMs);
    const points = this.#digests.flatMap((digest) => digest.toArray()).sort((a, b) => a.mean - b.mean);
    for (const quantile of quantiles) yield { labels: { ...labels, quantile: String(quantile) }, value: quantileOf(points, quantile) };
    yield { metricName: `${name}_sum`, labels, value: this.#sum };
    yield { metricName: `${name}_count`, labels, value: this.#count };
  }

  #rotate(nowMs: number): void {
    const passed = Math.floor((nowMs - this.#newestSinceMs) / WINDOW_MS);
    if (passed <= 0) return;
    this.#newestSinceMs += passed * WINDOW_MS;
    for (let i = 0; i < Math.min(passed, WINDOWS); i += 1) this.#digests.push(new TDigest(DIGEST_DELTA));
    this.#digests.splice(0, this.#digests.length - WINDOWS);
  }
}

interface Point {
  readonly mean: number;
  /** Observations it stands for. */
  readonly n: number;
}

/** Each point is taken to be the middle of its observations; between two points the line is straight. */
function quantileOf(points: readonly Point[], quantile: number): number {
  const wanted = quantile * points.reduce((total, { n }) => total + n, 0);
  let before = 0;
  let last: { readonly rank: number; readonly mean: number } | undefined;
  for (const { mean, n } of points) {
    const rank = before + n / 2;
    if (rank >= wanted) return last ? last.mean + ((mean - last.mean) * (wanted - last.rank)) / (rank - last.rank) : mean;
    before += n;
    last = { rank, mean };
  }
  return last?.mean ?? NaN;
}

const FAMILIES = {
  request: 'Summary of inference request duration in microseconds (includes cached requests)',
  queue: 'Summary of inference queuing duration in microseconds (includes cached requests)',
  compute_input: 'Cumulative compute input duration in microseconds (does not include cached requests)',
  compute_infer: 'Cumulative compute inference duration in microseconds (does not include cached requests)',
  compute_output: 'Cumulative inference compute output duration in microseconds (does not include cached requests)',
} as const;
type Stage = keyof typeof FAMILIES;

const US_PER_NS = 1e-3;

/** Fills the summaries; they live and die with the statistics of their model version. */
export class StageSummaries implements StatisticsObserver {
  readonly #byModel = new WeakMap<ModelStatistics, Record<Stage, WindowedQuantiles>>();

  constructor(readonly nowMs: () => number = () => performance.now()) {}

  onExecution(): void {
    // Summaries are of requests, not of batches.
  }

  onStages(statistics: ModelStatistics, stages: StageDurations): void {
    const nowMs = this.nowMs();
    const summaries = this.of(statistics);
    summaries.queue.add(stages.queueNs * US_PER_NS, nowMs);
    summaries.compute_input.add(stages.computeInputNs * US_PER_NS, nowMs);
    summaries.compute_infer.add(stages.computeInferNs * US_PER_NS, nowMs);
    summaries.compute_output.add(stages.computeOutputNs * US_PER_NS, nowMs);
  }

  onSuccess(statistics: ModelStatistics, totalNs: number): void {
    this.of(statistics).request.add(totalNs * US_PER_NS, this.nowMs());
  }

  of(statistics: ModelStatistics): Record<Stage, WindowedQuantiles> {
    let summaries = this.#byModel.get(statistics);
    if (!summaries) {
      const nowMs = this.nowMs();
      const fresh = (): WindowedQuantiles => new WindowedQuantiles(nowMs);
      summaries = { request: fresh(), queue: fresh(), compute_input: fresh(), compute_infer: fresh(), compute_output: fresh() };
      this.#byModel.set(statistics, summaries);
    }
    return summaries;
  }
}

export function registerSummaryMetrics(
  registry: Registry,
  models: LabelledModels,
  summaries: StageSummaries,
  quantiles: readonly number[],
): void {
  for (const stage of Object.keys(FAMILIES) as Stage[]) {
    const name = `nv_inference_${stage}_summary_us`;
    new ScrapedMetric(registry, {
      name,
      type: 'summary',
      help: FAMILIES[stage],
      *read(): Iterable<Series> {
        for (const [s, labels] of models) yield* summaries.of(s)[stage].series(name, labels, quantiles, summaries.nowMs());
      },
    });
  }
}
