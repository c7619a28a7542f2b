/**
 * Counts requests that are refused before they are accepted. Such an error passes several places on its way out, each of
 * which may be the first to know it. Invariant: a refusal counts once, where the most is known of its model.
 */
import type { ServingError } from '@paceline/protocol';
import type { ModelStatistics } from '@paceline/telemetry';

/** @param error made for this one request */
export function countRefusal(statistics: ModelStatistics, error: ServingError): void {
  if (error.counted) return;
  error.counted = true;
  statistics.recordRefusal(error.reason, error.reason === 'queue_full');
}
