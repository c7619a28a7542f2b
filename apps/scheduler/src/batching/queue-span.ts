/** The span of a request in its lane: from its arrival, or its first arrival where it is tried again, until it leaves. */
import type { ServingError } from '@paceline/protocol';
import type { Tracing } from '@paceline/telemetry';
import type { LaneItem } from './lane-item.js';

/** How it left: in a batch, or with an error. */
export type LeftQueue =
  | { readonly batchId: number; readonly batchRows: number; readonly batchRequests: number; readonly reason: string }
  | { readonly error: ServingError };

/** @returns the `traceparent` for those behind; undefined where the request is not traced */
export function queueSpan(
  tracing: Tracing,
  { envelope, enqueuedUs, losses }: LaneItem,
  left: LeftQueue,
  nowUs: number,
): string | undefined {
  const { traceParent, model, version, attempt = 1 } = envelope;
  if (traceParent === undefined) return undefined;
  const attributes = {
    'paceline.model': model,
    'paceline.version': version,
    'paceline.attempt': attempt,
    'paceline.losses': losses,
    ...('batchId' in left && {
      'paceline.batch_id': left.batchId,
      'paceline.batch_rows': left.batchRows,
      'paceline.batch_requests': left.batchRequests,
      'paceline.release_reason': left.reason,
    }),
  };
  const span = tracing.start({ name: 'paceline.queue', parent: traceParent, startUs: enqueuedUs, attributes });
  span?.end({ endUs: nowUs, error: 'error' in left ? left.error : undefined });
  return span?.traceParent ?? traceParent;
}
