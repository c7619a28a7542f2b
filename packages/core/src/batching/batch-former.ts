/**
 * Forms a batch from one shape group: Triton's rule for which prefix of the waiting requests may go and whether it should
 * go now. Requests are never split and never overtaken within their level; a level's batch is topped up from lower levels.
 */
import type { PendingQueue, ShapeGroup } from './pending-queue.js';
import type { BatchPolicy } from './policy.js';
import { NONE, type Handle } from './request-table.js';

/** A prefix of a group: its first `count` requests in the order of service. Reused between calls. */
export interface FormedBatch {
  count: number;
  rows: number;
  /** `partial`: nothing says that it should go now except time. */
  verdict: 'full' | 'preferred' | 'partial';
}

/** Rows at which a group is as full as it gets: the largest preferred size, or where batches are cut. */
export function fullRows(policy: BatchPolicy, group: ShapeGroup): number {
  if (!policy.batching) return 1;
  return policy.preferredRows.at(-1) ?? Math.min(policy.maxRows, group.profile.limit(group.rows));
}

/**
 * The prefix that would be executed now. With preferred sizes, the largest of them that a prefix reaches exactly wins
 * over more rows, unless `late`; a group that jumps over the largest one without reaching any stops short of it.
 * @param late the queue delay has passed: take everything that fits
 * @param largest rows at which the batch is full
 */
export function formBatch(
  policy: BatchPolicy,
  queue: PendingQueue,
  group: ShapeGroup,
  late: boolean,
  into: FormedBatch,
  largest: number = fullRows(policy, group),
): void {
  const { table } = queue;
  const hasPreferred = policy.preferredRows.length > 0;
  const cap = hasPreferred ? policy.maxRows : largest;
  let count = 0;
  let rows = 0;
  let bestCount = 0;
  let bestRows = 0;
  let blocked = false;
  scan: for (const tier of queue.order) {
    let handle: Handle = group.lists[tier]?.head ?? NONE;
    while (handle !== NONE) {
      const more = table.rows[handle] as number;
      if (count > 0) {
        if (hasPreferred && bestCount === 0 && rows + more > largest) {
          bestCount = count;
          bestRows = rows;
        }
        if (rows + more > cap || !policy.batching) {
          blocked = true;
          break scan;
        }
      }
      count += 1;
      rows += more;
      if (hasPreferred && policy.preferredRows.includes(rows)) {
        bestCount = count;
        bestRows = rows;
      }
      handle = table.nextInGroup[handle] as number;
    }
  }
  if (bestCount > 0 && !late) {
    into.count = bestCount;
    into.rows = bestRows;
    into.verdict = policy.preferredRows.includes(bestRows) ? 'preferred' : 'full';
    return;
  }
  into.count = count;
  into.rows = rows;
  into.verdict = blocked || rows >= largest ? 'full' : 'partial';
}

/** The handles of the first `count` requests of `group`, in the order of service. */
export function membersOf(queue: PendingQueue, group: ShapeGroup, count: number): Handle[] {
  const { table } = queue;
  const members: Handle[] = [];
  for (const tier of queue.order) {
    let handle: Handle = group.lists[tier]?.head ?? NONE;
    while (handle !== NONE && members.length < count) {
      members.push(handle);
      handle = table.nextInGroup[handle] as number;
    }
  }
  return members;
}
