/**
 * Paceline's own families: a latency histogram for each stage of a request, the sizes of batches, and why they were
 * released. Stages are observed as they happen; batches are read from the statistics at the scrape.
 */
import type { Registry } from 'prom-client';
import { RELEASE_REASONS, type ModelStatistics, type StageDurations, type StatisticsObserver } from '../statistics.js';
import { BucketCounts } from './bucket-counts.js';
import type { LabelledModels } from './model-labels.js';
import { ScrapedMetric, type Series } from './scraped-metric.js';

/** Nanoseconds: from 100 µs, below which no stage is worth telling apart, to the default request timeout. */
const DURATION_BOUNDS_NS: readonly number[] = [
  100e3, 250e3, 500e3, 1e6, 2.5e6, 5e6, 10e6, 25e6, 50e6, 100e6, 250e6, 500e6, 1e9, 2.5e9, 10e9, 60e9,
];
const SECONDS_PER_NS = 1e-9;
const BATCH_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

const STAGES = {
  request: 'From the admission of a request to its reply, successful requests',
  queue: 'In the queue of the model, requests that ran',
  compute_input: 'Gathering the inputs of the batch a request ran in',
  compute_infer: 'Running the model on the batch a request ran in',
  compute_output: 'Scattering the outputs of the batch a request ran in',
} as const;

type Stage = keyof typeof STAGES;

const fresh = (): Record<Stage, BucketCounts> => ({
  request: new BucketCounts(DURATION_BOUNDS_NS),
  queue: new BucketCounts(DURATION_BOUNDS_NS),
  compute_input: new BucketCounts(DURATION_BOUNDS_NS),
  compute_infer: new BucketCounts(DURATION_BOUNDS_NS),
  compute_output: new BucketCounts(DURATION_BOUNDS_NS),
});

/** Fills the stage histograms; they live and die with the statistics of their model version. */
export class StageHistograms implements StatisticsObserver {
  readonly #byModel = new WeakMap<ModelStatistics, Record<Stage, BucketCounts>>();

  onExecution(): void {
    // Batch sizes and release reasons are in the statistics already.
  }

  onStages(statistics: ModelStatistics, stages: StageDurations): void {
    const histograms = this.#of(statistics);
    histograms.queue.add(stages.queueNs);
    histograms.compute_input.add(stages.computeInputNs);
    histograms.compute_infer.add(stages.computeInferNs);
    histograms.compute_output.add(stages.computeOutputNs);
  }

  onSuccess(statistics: ModelStatistics, totalNs: number): void {
    this.#of(statistics).request.add(totalNs);
  }

  /** undefined until the model version was used. */
  find(statistics: ModelStatistics, stage: Stage): BucketCounts | undefined {
    return this.#byModel.get(statistics)?.[stage];
  }

  #of(statistics: ModelStatistics): Record<Stage, BucketCounts> {
    let histograms = this.#byModel.get(statistics);
    if (!histograms) {
      histograms = fresh();
      this.#byModel.set(statistics, histograms);
    }
    return histograms;
  }
}

export function registerStageMetrics(registry: Registry, models: LabelledModels, histograms: StageHistograms): void {
  for (const stage of Object.keys(STAGES) as Stage[]) {
    const name = `paceline_${stage}_duration_seconds`;
    new ScrapedMetric(registry, {
      name,
      type: 'histogram',
      help: STAGES[stage],
      *read(): Iterable<Series> {
        for (const [s, labels] of models) {
          const counts = histograms.find(s, stage);
          if (counts) yield* counts.series(name, labels, SECONDS_PER_NS);
        }
      },
    });
  }
  new ScrapedMetric(registry, {
    name: 'paceline_batch_size',
    type: 'histogram',
    help: 'Rows of the batches a model ran',
    *read(): Iterable<Series> {
      for (const [s, labels] of models) {
        const counts = new BucketCounts(BATCH_BOUNDS);
        for (const { batchSize, computeInfer } of s.batchSizes.values()) counts.add(batchSize, computeInfer.count);
        if (counts.count > 0) yield* counts.series('paceline_batch_size', labels);
      }
    },
  });
  new ScrapedMetric(registry, {
    name: 'paceline_batch_release_total',
    type: 'counter',
    help: 'Batches by the reason they were released',
    *read(): Iterable<Series> {
      for (const [s, labels] of models) {
        for (const reason of RELEASE_REASONS) yield { labels: { ...labels, reason }, value: s.executionsByReason[reason] };
      }
    },
  });
}
