/**
 * Everything a scrape of this process shows. Made before the first model is loaded: it becomes the observer of the
 * statistics, and statistics made earlier would have no stage histograms.
 */
import { setImmediate } from 'node:timers/promises';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { ModelStatistics, StageDurations, StatisticsObserver, StatisticsRegistry } from '../statistics.js';
import { registerHostMetrics } from './host-metrics.js';
import { LabelledModels, type TagsOf } from './model-labels.js';
import { registerObjectiveMetrics } from './objective-metrics.js';
import { registerRequestMetrics } from './request-metrics.js';
import { ScrapedMetric, type ScrapedMetricOptions } from './scraped-metric.js';
import { registerServerMetrics, type ServerReadings } from './server-metrics.js';
import { registerStageMetrics, StageHistograms } from './stage-metrics.js';
import { registerSummaryMetrics, StageSummaries } from './summary-metrics.js';
import { registerTritonMetrics } from './triton-metrics.js';

/** Milliseconds between looks at the event loop's delay: often enough for percentiles, too rare to cost anything. */
const EVENT_LOOP_PRECISION_MS = 100;

/** Triton's `--metrics-config`. */
export interface LatencyMetrics {
  /** Cumulative durations, `nv_inference_*_duration_us`. */
  readonly counters: boolean;
  /** Quantiles, each above 0 and below 1, of `nv_inference_*_summary_us`; empty = no summaries. */
  readonly summaryQuantiles: readonly number[];
}

const DEFAULT_LATENCIES: LatencyMetrics = { counters: true, summaryQuantiles: [] };

/** A family whose series are read, from numbers that somebody else keeps, when somebody scrapes. */
export type MetricFamily = ScrapedMetricOptions;

export interface MetricsOptions {
  readonly statistics: StatisticsRegistry;
  /** Further labels of a model version; a tag `team` becomes `_team`. */
  readonly tagsOf?: TagsOf;
  /** Whether to report this process (CPU, memory, event loop); false in tests. */
  readonly processMetrics: boolean;
  /** Whether to report the CPU and memory of the machine; as `processMetrics` unless given. */
  readonly hostMetrics?: boolean;
  readonly latencies?: LatencyMetrics;
  readonly server?: ServerReadings;
  /** What the process shows beside that. */
  readonly families?: readonly MetricFamily[];
}

export interface Metrics {
  /** Value of the Content-Type header for {@link render}. */
  readonly contentType: string;
  /** All families in Prometheus' text form. */
  render(): Promise<string>;
}

/**
 * Counters and gauges of one moment, so that their sums add up; then family by family, letting other work of the event loop
 * go first: with hundreds of models the whole text takes 100 ms.
 */
async function render(registry: Registry, models: LabelledModels): Promise<string> {
  models.refresh();
  const names = registry.getMetricsAsArray().map(({ name }) => name);
  for (const name of names) {
    const metric = registry.getSingleMetric(name);
    if (metric instanceof ScrapedMetric && metric.isSmall) metric.take();
  }
  const families: string[] = [];
  for (const name of names) {
    families.push(await registry.getSingleMetricAsString(name));
    await setImmediate();
  }
  return `${families.join('\n\n')}\n`;
}

/** Tells several observers, where one is not enough. */
class Observers implements StatisticsObserver {
  constructor(private readonly observers: readonly StatisticsObserver[]) {}

  onExecution(...event: Parameters<StatisticsObserver['onExecution']>): void {
    for (const observer of this.observers) observer.onExecution(...event);
  }

  onStages(statistics: ModelStatistics, stages: StageDurations): void {
    for (const observer of this.observers) observer.onStages(statistics, stages);
  }

  onSuccess(statistics: ModelStatistics, totalNs: number): void {
    for (const observer of this.observers) observer.onSuccess(statistics, totalNs);
  }
}

export function createMetrics(options: MetricsOptions): Metrics {
  const { statistics, tagsOf, processMetrics, hostMetrics = processMetrics, latencies = DEFAULT_LATENCIES, server = {} } = options;
  const registry = new Registry();
  const histograms = new StageHistograms();
  const models = new LabelledModels(statistics, tagsOf);
  registerTritonMetrics(registry, models, latencies.counters);
  registerStageMetrics(registry, models, histograms);
  registerRequestMetrics(registry, models, statistics);
  registerObjectiveMetrics(registry, models);
  registerServerMetrics(registry, server);
  for (const family of options.families ?? []) new ScrapedMetric(registry, family);
  statistics.observer = histograms;
  if (latencies.summaryQuantiles.length > 0) {
    const summaries = new StageSummaries();
    registerSummaryMetrics(registry, models, summaries, latencies.summaryQuantiles);
    statistics.observer = new Observers([histograms, summaries]);
  }
  if (hostMetrics) registerHostMetrics(registry);
  if (processMetrics) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  // One after the other: two scrapes at a time would mix their moments.
  let last: Promise<unknown> = Promise.resolve();
  return {
    contentType: registry.contentType,
    render() {
      const next = last.then(() => render(registry, models));
      last = next.catch(() => undefined);
      return next;
    },
  };
}
