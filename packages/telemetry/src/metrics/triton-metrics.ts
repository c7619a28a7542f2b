/** Triton's metric families by their names, types and units, over the counters of every loaded model version. */
import type { Registry } from 'prom-client';
import { FAILURE_REASONS, type ModelStatistics } from '../statistics.js';
import type { LabelledModels } from './model-labels.js';
import { ScrapedMetric, type Series } from './scraped-metric.js';

const wholeUs = (ns: number): number => Math.round(ns / 1000);

const FAMILIES: readonly {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly value: (s: ModelStatistics) => number;
}[] = [
  {
    name: 'nv_inference_request_success',
    type: 'counter',
    help: 'Number of successful inference requests, all batch sizes',
    value: (s) => s.success.count,
  },
  {
    name: 'nv_inference_count',
    type: 'counter',
    help: 'Number of inferences performed (does not include cached requests)',
    value: (s) => s.inferenceCount,
  },
  {
    name: 'nv_inference_exec_count',
    type: 'counter',
    help: 'Number of model executions performed (does not include cached requests)',
    value: (s) => s.executionCount,
  },
  {
    name: 'nv_inference_request_duration_us',
    type: 'counter',
    help: 'Cumulative inference request duration in microseconds (includes cached requests)',
    value: (s) => wholeUs(s.success.ns),
  },
  {
    name: 'nv_inference_queue_duration_us',
    type: 'counter',
    help: 'Cumulative inference queuing duration in microseconds (includes cached requests)',
    value: (s) => wholeUs(s.queue.ns),
  },
  {
    name: 'nv_inference_compute_input_duration_us',
    type: 'counter',
    help: 'Cumulative compute input duration in microseconds (does not include cached requests)',
    value: (s) => wholeUs(s.computeInput.ns),
  },
  {
    name: 'nv_inference_compute_infer_duration_us',
    type: 'counter',
    help: 'Cumulative compute inference duration in microseconds (does not include cached requests)',
    value: (s) => wholeUs(s.computeInfer.ns),
  },
  {
    name: 'nv_inference_compute_output_duration_us',
    type: 'counter',
    help: 'Cumulative inference compute output duration in microseconds (does not include cached requests)',
    value: (s) => wholeUs(s.computeOutput.ns),
  },
  {
    name: 'nv_inference_pending_request_count',
    type: 'gauge',
    help: 'Instantaneous number of pending requests awaiting execution per-model.',
    value: (s) => s.pendingRequests,
  },
  { name: 'nv_model_load_duration_secs', type: 'gauge', help: 'Model load time in seconds', value: (s) => s.loadDurationMs / 1000 },
];

const CUMULATIVE_DURATION = /_duration_us$/;

/** @param counterLatencies whether the cumulative durations are among them */
export function registerTritonMetrics(registry: Registry, models: LabelledModels, counterLatencies: boolean): void {
  for (const { name, type, help, value } of FAMILIES) {
    if (!counterLatencies && CUMULATIVE_DURATION.test(name)) continue;
    new ScrapedMetric(registry, {
      name,
      type,
      help,
      *read(): Iterable<Series> {
        for (const [s, labels] of models) yield { labels, value: value(s) };
      },
    });
  }
  new ScrapedMetric(registry, {
    name: 'nv_inference_request_failure',
    type: 'counter',
    help: 'Number of failed inference requests, all batch sizes',
    *read(): Iterable<Series> {
      for (const [s, labels] of models) {
        for (const reason of FAILURE_REASONS) yield { labels: { ...labels, reason }, value: s.failuresByReason[reason] };
      }
    },
  });
}
