/** Which of Triton's failure reasons an error counts as, by its code. */
import type { ErrorCode, ServingError } from '@paceline/protocol';
import type { FailureReason, ModelStatistics } from '@paceline/telemetry';

const REASONS: Readonly<Partial<Record<ErrorCode, FailureReason>>> = {
  CANCELLED: 'CANCELED',
  UNAVAILABLE: 'REJECTED',
  RESOURCE_EXHAUSTED: 'REJECTED',
  INTERNAL: 'BACKEND',
  UNKNOWN: 'BACKEND',
  INVALID_ARGUMENT: 'BACKEND',
  DATA_LOSS: 'BACKEND',
};

/** The queue's own refusals, whatever their code. */
const REJECTION = /queue|timeout_expired/;

/** @returns the reason, for a request that was accepted and then failed */
export function failureReasonOf(error: ServingError): FailureReason {
  if (error.reason === 'request_timeout') return 'OTHER';
  if (REJECTION.test(error.reason)) return 'REJECTED';
  return error.code === 'DEADLINE_EXCEEDED' ? 'REJECTED' : (REASONS[error.code] ?? 'OTHER');
}

/**
 * Counts the end of an accepted request that got no result. One that found its queue full was never taken in: it is a
 * refusal, and a failure by reason only, not among the failed requests of the statistics.
 */
export function countFailure(statistics: ModelStatistics, error: ServingError, totalNs: number): void {
  if (error.code === 'RESOURCE_EXHAUSTED') statistics.recordRejection(error.reason);
  else statistics.recordFailure(failureReasonOf(error), totalNs, error.reason);
}
