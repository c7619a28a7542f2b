/**
 * Whether an under-full batch is held for a moment although an instance is idle and no queue delay is configured. When a
 * batch ends, its clients come back within microseconds of one another; running the first three at once would cost the
 * model a whole pass and make the others wait for it. A batch is held only while one more request raises the rows a
 * second of the batch, and for at most a tenth of the time the batch would take to execute; a lone request never.
 */
import type { Arrivals } from './arrivals.js';
import type { BatchProfile } from './profile.js';

/** Share of the expected execution time that a batch may be held. */
const HOLD_SHARE = 0.1;
/** Never held longer, microseconds. */
const HOLD_MAX_US = 2000;
/** A batch that executes faster than this is not worth holding, microseconds. */
const WORTHWHILE_US = 300;
/**
 * @param rows rows of the batch as it stands
 * @param rowsPerRequest mean rows of the requests in it
 * @param sinceUs when the batch could have been dispatched
 * @returns until when to hold the batch, microseconds; -1 = do not hold
 */
export function holdUntil(
  rows: number,
  rowsPerRequest: number,
  profile: BatchProfile,
  arrivals: Arrivals,
  sinceUs: number,
  nowUs: number,
): number {
  const gapUs = arrivals.gapUs();
  if (gapUs === Infinity) return -1;
  const expectedUs = profile.expectedUs(rows);
  if (expectedUs === undefined || expectedUs < WORTHWHILE_US) return -1;
  const untilUs = sinceUs + Math.min(HOLD_MAX_US, HOLD_SHARE * expectedUs);
  const holdUs = Math.min(untilUs, arrivals.overUs());
  if (holdUs <= nowUs || arrivals.nextUs(nowUs) > untilUs) return -1;
  const grown = rows + rowsPerRequest;
  if (grown > profile.maxRows) return -1;
  const grownUs = profile.expectedUs(grown) as number;
  return grown / (grownUs + arrivals.nextUs(nowUs) - nowUs) > rows / expectedUs ? holdUs : -1;
}
