/**
 * Everything a scrape of this process shows. Made before the first model is loaded: it becomes the observer of the
 * statistics, and statistics made earlier would have no stage histograms.
 */
import { setImmediate } from 'node:timers/promises';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { StatisticsRegistry } from '../statistics.js';
import { registerHostMetrics } from './host-metrics.js';
import { LabelledModels, type TagsOf } from './model-labels.js';
import { registerStageMetrics, StageHistograms } from './stage-metrics.js';
import { registerTritonMetrics } from './triton-metrics.js';

/** Milliseconds between looks at the event loop's delay: often enough for percentiles, too rare to cost anything. */
const EVENT_LOOP_PRECISION_MS = 100;

export interface MetricsOptions {
  readonly statistics: StatisticsRegistry;
  /** Further labels of a model version; a tag `team` becomes `_team`. */
  readonly tagsOf?: TagsOf;
  /** Whether to report the process (CPU, memory, event loop) and the machine; false in tests. */
  readonly processMetrics: boolean;
}

export interface Metrics {
  /** Value of the Content-Type header for {@link render}. */
  readonly contentType: string;
  /** All families in Prometheus' text form. */
  render(): Promise<string>;
}

/** Family by family, letting other work of the event loop go first: with hundreds of models the whole text takes 100 ms. */
async function render(registry: Registry, models: LabelledModels): Promise<string> {
  models.refresh();
  const families: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    families.push(await registry.getSingleMetricAsString(name));
    await setImmediate();
  }
  return `${families.join('\n\n')}\n`;
}

export function createMetrics({ statistics, tagsOf, processMetrics }: MetricsOptions): Metrics {
  const registry = new Registry();
  const histograms = new StageHistograms();
  statistics.observer = histograms;
  const models = new LabelledModels(statistics, tagsOf);
  registerTritonMetrics(registry, models);
  registerStageMetrics(registry, models, histograms);
  if (processMetrics) {
    registerHostMetrics(registry);
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  }
  return { contentType: registry.contentType, render: () => render(registry, models) };
}
