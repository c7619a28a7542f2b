/**
 * Paceline's families about requests: where each one that came is now, or how it ended. For a model version, at every
 * moment: received = successes + failed + refused + in flight.
 */
import type { Registry } from 'prom-client';
import type { CountsByReason, ModelStatistics, StatisticsRegistry } from '../statistics.js';
import type { LabelledModels } from './model-labels.js';
import { ScrapedMetric, type Labels, type Series } from './scraped-metric.js';

const GAUGES: readonly { readonly name: string; readonly help: string; readonly value: (s: ModelStatistics) => number }[] = [
  { name: 'paceline_in_flight_requests', help: 'Requests accepted and not yet answered', value: (s) => s.inFlight },
  { name: 'paceline_in_flight_bytes', help: 'Input tensors of the requests in flight, in bytes', value: (s) => s.inFlightBytes },
  { name: 'paceline_queue_requests', help: 'Requests waiting for execution', value: (s) => s.pendingRequests },
  { name: 'paceline_queue_rows', help: 'Batch rows waiting for execution', value: (s) => s.pendingRows },
];

const BY_REASON: readonly { readonly name: string; readonly help: string; readonly counts: (s: ModelStatistics) => CountsByReason }[] = [
  {
    name: 'paceline_refused_requests_total',
    help: 'Requests that were not taken in, by reason; model is empty where it was not known',
    counts: (s) => s.refusedByReason,
  },
  {
    name: 'paceline_failed_requests_total',
    help: 'Requests that were taken in and got no result, by reason',
    counts: (s) => s.failedByReason,
  },
  {
    name: 'paceline_instance_restarts_total',
    help: 'Model instances that fell or were replaced, by reason',
    counts: (s) => s.restartsByReason,
  },
];

/** Every model, and last the requests that named none that exists. */
function* withUnknown(models: LabelledModels, { unknownModel }: StatisticsRegistry): Iterable<readonly [ModelStatistics, Labels]> {
  yield* models;
  if (unknownModel.received > 0) yield [unknownModel, { model: '', version: '' }];
}

export function registerRequestMetrics(registry: Registry, models: LabelledModels, statistics: StatisticsRegistry): void {
  new ScrapedMetric(registry, {
    name: 'paceline_received_requests_total',
    type: 'counter',
    help: 'Inference requests that came, whatever became of them; model is empty where it was not known',
    *read(): Iterable<Series> {
      for (const [s, labels] of withUnknown(models, statistics)) yield { labels, value: s.received };
    },
  });
  for (const { name, help, value } of GAUGES) {
    new ScrapedMetric(registry, {
      name,
      type: 'gauge',
      help,
      *read(): Iterable<Series> {
        for (const [s, labels] of models) yield { labels, value: value(s) };
      },
    });
  }
  for (const { name, help, counts } of BY_REASON) {
    new ScrapedMetric(registry, {
      name,
      type: 'counter',
      help,
      *read(): Iterable<Series> {
        for (const [s, labels] of withUnknown(models, statistics))
          for (const [reason, value] of counts(s)) yield { labels: { ...labels, reason }, value };
      },
    });
  }
  new ScrapedMetric(registry, {
    name: 'paceline_instance_memory_bytes',
    type: 'gauge',
    help: 'Resident memory of a model instance, in bytes; an equal share of its process where several share one',
    *read(): Iterable<Series> {
      const labelsOf = new Map(Array.from(models, ([s, labels]) => [`${s.model}\u0000${s.version}`, labels]));
      for (const { model, version, instance, residentBytes } of statistics.instanceMemory()) {
        // A worker that is a process of its own counts no requests, and knows its models by their instances.
        const labels = labelsOf.get(`${model}\u0000${version}`) ?? { model, version };
        yield { labels: { ...labels, instance }, value: residentBytes };
      }
    },
  });
}
