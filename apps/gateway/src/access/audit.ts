/**
 * The audit trail: one line in the log for every attempt to change the server, with the field `audit: true`. Values are
 * fields of their own, which the log escapes: no name can begin a new line. No key is ever among them.
 */
import type { Logger } from '@paceline/telemetry';

export interface AuditEvent {
  /** What was to be done, e.g. `model.load`. */
  readonly action: string;
  /** See {@link Grant.who}. */
  readonly who: string;
  /** Address of the caller; undefined for the server itself. */
  readonly peer: string | undefined;
  /** What it was to be done to; "" where that is the server as a whole. */
  readonly target: string;
  /** `refused`: not allowed; `failed`: allowed and not done. */
  readonly outcome: 'ok' | 'refused' | 'failed';
  /** The status that was answered, or the reason of an error. */
  readonly detail: string;
}

/** Longer names come from clients only to fill the disk. */
const MAX_TARGET = 256;

export function writeAudit(logger: Logger, event: AuditEvent): void {
  const target = event.target.length > MAX_TARGET ? `${event.target.slice(0, MAX_TARGET)}…` : event.target;
  logger.info({ audit: true, ...event, target }, 'audit');
}
