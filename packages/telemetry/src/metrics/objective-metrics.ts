/** Paceline's families about latency objectives; a model without one has no series. */
import type { Registry } from 'prom-client';
import type { ObjectiveCounts } from '../batching-statistics.js';
import type { LabelledModels } from './model-labels.js';
import { ScrapedMetric, type Series } from './scraped-metric.js';

const FAMILIES: readonly { readonly name: string; readonly help: string; readonly value: (counts: ObjectiveCounts) => number }[] = [
  {
    name: 'paceline_objective_attained_total',
    help: 'Requests answered within the latency objective of their model',
    value: (c) => c.attained,
  },
  {
    name: 'paceline_objective_missed_total',
    help: 'Requests answered, or timed out in the queue, after the latency objective',
    value: (c) => c.missed,
  },
  {
    name: 'paceline_objective_shed_total',
    help: 'Requests refused because they could not be answered within the latency objective',
    value: (c) => c.shed,
  },
];

export function registerObjectiveMetrics(registry: Registry, models: LabelledModels): void {
  for (const { name, help, value } of FAMILIES) {
    new ScrapedMetric(registry, {
      name,
      type: 'counter',
      help,
      *read(): Iterable<Series> {
        for (const [s, labels] of models) if (s.batching?.objective) yield { labels, value: value(s.batching.objective) };
      },
    });
  }
}
