/** A batch of one lane that is with the worker: its members, why it was released and since when it executes. */
import type { ReleaseReason, Tracing } from '@paceline/telemetry';
import type { Batch, BatchCompletion, BatchMember } from '@paceline/worker-rpc';
import type { Flight } from '../dispatch/dispatcher.js';
import type { LaneSpec } from '../placement/lane-host.js';
import type { LaneInstance } from './lane-instances.js';
import type { LaneItem } from './lane-item.js';
import { queueSpan } from './queue-span.js';

export class LaneBatch implements Flight {
  /** When it began to execute, as far as the lane knows, microseconds; undefined while staged. */
  startedUs: number | undefined;

  constructor(
    readonly batch: Batch,
    readonly items: readonly LaneItem[],
    readonly reason: ReleaseReason,
    readonly instance: LaneInstance,
    private readonly owner: { onFlightEnd(flight: LaneBatch, completion: BatchCompletion): void },
  ) {}

  onCompletion(completion: BatchCompletion): void {
    this.owner.onFlightEnd(this, completion);
  }
}

/** What is sent to the worker. */
export function batchOf(
  { model, version, generation }: LaneSpec,
  id: number,
  items: readonly LaneItem[],
  rows: number,
  to: { readonly instance: string; readonly quarantine: boolean; readonly reason: ReleaseReason },
  nowUs: number,
  tracing: Tracing | undefined,
): Batch {
  const left = { batchId: id, batchRows: rows, batchRequests: items.length, reason: to.reason };
  return {
    id,
    model,
    version,
    generation,
    instance: to.instance,
    rows,
    members: items.map((item) => memberOf(item, nowUs, tracing && queueSpan(tracing, item, left, nowUs))),
    quarantine: to.quarantine,
  };
}

/** The member of a batch that carries `item`; its queue time ends now. @param queued `traceparent` of its span in the queue */
function memberOf(item: LaneItem, nowUs: number, queued: string | undefined): BatchMember {
  const { ref, rows, inputs, outputs, attempt, heldBytes, traceParent } = item.envelope;
  const member = { ref, rows, inputs, outputs, queueNs: Math.max(0, Math.round((nowUs - item.enqueuedUs) * 1000)) };
  // Only requests that are traced or from another process have any of these; spreading costs the others nothing.
  if (attempt === undefined && heldBytes === undefined && traceParent === undefined) return member;
  return {
    ...member,
    ...(attempt && { attempt }),
    ...(heldBytes && { heldBytes }),
    ...(traceParent && { traceParent: queued ?? traceParent }),
  };
}
