/**
 * The spans of a batch at its worker: for each traced request one of the batch, under its span in the queue and with links
 * to those of the others, and inside it one of the run in the instance host. So each request's trace is complete by itself.
 */
import type { ServingError } from '@paceline/protocol';
import type { Tracing } from '@paceline/telemetry';
import type { Batch } from '@paceline/worker-rpc';
import type { BatchOutputs } from './scatter.js';

/** On the worker's monotonic clock, microseconds. */
export interface BatchTimes {
  readonly givenUs: number;
  /** When the host had nothing before it any more; absent where it never came so far. */
  readonly beganUs?: number;
  /** The run in the host; absent where it did not end well. */
  readonly run?: { readonly startUs: number; readonly endUs: number };
  readonly endUs: number;
}

/** Others that a span links to at the most. */
const MAX_LINKS = 32;

/** The run in the host, counted back from when its answer came: the two have no clock in common. */
export function runOf({ inferNs, layOutNs }: BatchOutputs, arrivedUs: number): NonNullable<BatchTimes['run']> {
  const endUs = arrivedUs - layOutNs / 1000;
  return { startUs: endUs - inferNs / 1000, endUs };
}

/** @param error undefined for a batch that went well */
export function batchSpans(tracing: Tracing, batch: Batch, times: BatchTimes, error?: ServingError): void {
  const parents = batch.members.flatMap(({ traceParent }) => traceParent ?? []);
  if (parents.length === 0) return;
  const { model, version, instance, rows, members, quarantine = false } = batch;
  const { givenUs, beganUs, run, endUs } = times;
  const attributes = {
    'paceline.model': model,
    'paceline.version': version,
    'paceline.instance': instance,
    'paceline.batch_rows': rows,
    'paceline.batch_requests': members.length,
    ...(beganUs !== undefined && { 'paceline.staged_us': beganUs - givenUs }),
    ...(quarantine && { 'paceline.quarantine': true }),
  };
  const linked = parents.slice(0, MAX_LINKS + 1);
  for (const parent of parents) {
    const links = linked.filter((other) => other !== parent).slice(0, MAX_LINKS);
    const span = tracing.start({ name: 'paceline.batch', parent, startUs: givenUs, attributes, links });
    if (!span) continue;
    if (run) {
      const about = { 'paceline.model': model, 'paceline.instance': instance, 'paceline.batch_rows': rows };
      const inHost = { name: 'paceline.execute', parent: span.traceParent, startUs: run.startUs, attributes: about } as const;
      tracing.start(inHost)?.end({ endUs: run.endUs });
    }
    span.end({ endUs, error });
  }
}
