/**
 * How much of each thing a single request may have, whatever protocol it comes by: more than any client sends, and few
 * enough that reading them costs nobody time or memory. Checked while a request is decoded, before anything is built of it.
 */
import { ServingError, WIRE_LIMITS } from '@paceline/protocol';

export const REQUEST_LIMITS = {
  ...WIRE_LIMITS,
  /** UTF-16 code units of the client's id, which is kept, logged and sent back. */
  idLength: 1024,
} as const;

/** @throws ServingError INVALID_ARGUMENT with both counts, e.g. "more than 64 dimensions: found 70" */
export function bounded(found: number, max: number, what: string): void {
  if (found <= max) return;
  throw new ServingError('INVALID_ARGUMENT', `more than ${max} ${what}: found ${found}`, { reason: 'too_many' });
}

/** @throws ServingError INVALID_ARGUMENT */
export function checkId(id: string): void {
  if (id.length <= REQUEST_LIMITS.idLength) return;
  throw new ServingError('INVALID_ARGUMENT', `request id has ${id.length} characters, expected at most ${REQUEST_LIMITS.idLength}`, {
    reason: 'id_too_long',
  });
}
