/**
 * Whether an under-full batch is held for what a steady stream of requests still brings. Eager batching keeps a model
 * busy all the time at half its capacity, in small batches that each pay for a whole pass; a short hold makes them larger
 * and leaves the processor idle in between. So a hold must save processor time, in proportion to what it costs in latency.
 */
import type { BatchProfile } from './profile.js';
import type { Stream } from './stream.js';

/** Share of the expected execution time that a batch may be held where nothing was configured. */
const HOLD_SHARE = 0.6;
/** ... and never longer, microseconds. */
const HOLD_MAX_US = 5000;
/** A batch that executes faster is not worth holding: an ordinary timer is late by a millisecond, a precise one polls. */
const WORTHWHILE_US = 1000;
/** Share of the processor time that a hold as long as the execution must save; a shorter one in proportion. */
export const WORTH = 0.3;

/** An under-full batch as it stands. */
export interface Forming {
  readonly rows: number;
  readonly requests: number;
  /** Rows at which it is as full as it gets. */
  readonly fullRows: number;
}

/**
 * @param untilUs the latest moment to which it may be held
 * @param worth see {@link WORTH}
 * @returns until when to hold the batch, microseconds; -1 = do not hold
 */
export function holdForStream(
  { rows, requests, fullRows }: Forming,
  profile: BatchProfile,
  stream: Stream,
  untilUs: number,
  worth: number,
  nowUs: number,
): number {
  const restUs = untilUs - nowUs;
  const gapUs = stream.gapUs(requests);
  if (gapUs > restUs) return -1;
  const overUs = stream.overUs();
  const expectedUs = profile.expectedUs(rows);
  if (overUs <= nowUs || expectedUs === undefined) return -1;
  const grown = Math.min(fullRows, rows + (restUs / gapUs) * (rows / requests));
  const saved = profile.saving(rows, grown);
  return saved > 0 && saved >= (worth * restUs) / expectedUs ? Math.min(untilUs, overUs) : -1;
}

/** The latest moment to which a batch may be held where no objective is configured, microseconds. */
export function holdLimitUs(rows: number, profile: BatchProfile, sinceUs: number): number {
  const expectedUs = profile.expectedUs(rows) ?? 0;
  return expectedUs < WORTHWHILE_US ? sinceUs : sinceUs + Math.min(HOLD_MAX_US, HOLD_SHARE * expectedUs);
}
