/** What is learned and counted from a batch that ended well; its members have been answered by the worker. */
import type { DynamicBatcher } from '@paceline/core';
import type { ModelStatistics } from '@paceline/telemetry';
import type { BatchCompletion } from '@paceline/worker-rpc';
import type { LaneBatch } from './lane-batch.js';
import type { LaneItems } from './lane-items.js';
import type { LaneObjective } from './lane-objective.js';

/** The books of a lane. */
export interface LaneBooks {
  readonly statistics: ModelStatistics;
  readonly batcher: DynamicBatcher;
  readonly objective: LaneObjective;
  readonly items: LaneItems;
}

export function recordSuccess(flight: LaneBatch, completion: BatchCompletion, books: LaneBooks, nowUs: number, wallMs: number): void {
  const { computeInputNs, computeInferNs, computeOutputNs } = completion;
  const { statistics, batcher, objective, items } = books;
  const { rows } = flight.batch;
  statistics.recordExecution({ rows, reason: flight.reason, computeInputNs, computeInferNs, computeOutputNs }, wallMs);
  const startedUs = flight.startedUs ?? nowUs;
  for (const item of flight.items) {
    const queueNs = Math.max(0, Math.round((startedUs - item.enqueuedUs) * 1000));
    // The request of a client that left is no success, so it has no stages either.
    if (!item.cancelled) statistics.recordStages({ queueNs, computeInputNs, computeInferNs, computeOutputNs });
    objective.answered(nowUs - item.enqueuedUs);
    items.finish(item);
  }
  // The model's own time only: the other parts are mostly waits for a turn on a busy core, whatever the size of the batch.
  const executionUs = computeInferNs / 1000;
  const overheadUs = Math.max(0, nowUs - startedUs - executionUs);
  batcher.completed(flight.items[0]?.envelope.shapeKey ?? '', rows, executionUs, flight.items.length, nowUs, overheadUs);
}
