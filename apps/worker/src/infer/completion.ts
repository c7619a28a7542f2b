/** The completion of a batch that answered nobody, and the error it carries. */
import { ServingError } from '@paceline/protocol';
import type { Batch, BatchCompletion } from '@paceline/worker-rpc';

export function unanswered(batch: Batch, outcome: 'failed' | 'lost' | 'refused', started: boolean, error: ServingError): BatchCompletion {
  return {
    batchId: batch.id,
    instance: batch.instance,
    outcome,
    started,
    error,
    computeInputNs: 0,
    computeInferNs: 0,
    computeOutputNs: 0,
  };
}

/** What went wrong in handling a batch, in words for clients. */
export function asServingError(error: unknown): ServingError {
  if (error instanceof ServingError) return error;
  return new ServingError('INTERNAL', 'the worker could not handle the batch; the server log has the details', {
    reason: 'internal',
    cause: error,
  });
}
