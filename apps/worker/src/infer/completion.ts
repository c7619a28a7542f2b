/** The completion of a batch that answered nobody. */
import type { ServingError } from '@paceline/protocol';
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
