/**
 * Who waits: brings requests into the queue and takes them out, keeps the size of each level, and knows whose time is
 * over. Invariant: a request that waits is in the queue and among the expiries, and counts for its level.
 */
import { DueGroups } from './due-groups.js';
import { IndexedHeap } from './indexed-heap.js';
import { Levels, type Level } from './levels.js';
import { PendingQueue } from './pending-queue.js';
import { queueTimeoutOf, type BatchPolicy } from './policy.js';
import type { BatchProfile } from './profile.js';
import { NONE, type Handle } from './request-table.js';

export interface QueuedRequest {
  /** Along the batch dimension, 1..maxRows. */
  readonly rows: number;
  /** As the client asked; 0 = default. */
  readonly priority: number;
  /** As the client asked, microseconds; 0 = none. */
  readonly timeoutUs: number;
  /** Requests with equal keys may share a batch. */
  readonly shapeKey: string;
}

/** What left the queue because its time was over. */
export interface Departed {
  readonly expired: readonly Handle[];
  readonly shed: readonly Handle[];
}

const NOBODY: Departed = { expired: [], shed: [] };

export class WaitingRoom {
  readonly queue: PendingQueue;
  readonly levels: Levels;
  readonly due: DueGroups;
  /** By handle; key = when the timeout of the request acts, or its latest start passes. */
  readonly #expiries = new IndexedHeap();

  constructor(
    private readonly policy: BatchPolicy,
    profileOf: (shapeKey: string) => BatchProfile,
  ) {
    this.queue = new PendingQueue(profileOf);
    this.levels = new Levels(policy, this.queue);
    this.due = new DueGroups(policy, this.queue);
  }

  /** When the time of a request will be over next; Infinity while nobody waits. */
  get nextExpiryUs(): number {
    return this.#expiries.minKey;
  }

  /**
   * @param enqueuedUs when it first came
   * @param sinceUs from when its timeout counts
   * @param latestUs when it must have started to meet the latency objective
   */
  add(request: QueuedRequest, level: Level, enqueuedUs: number, sinceUs: number, latestUs: number, atFront: boolean): Handle {
    const { table } = this.queue;
    const handle = table.take();
    const timeoutUs = queueTimeoutOf(level.policy, request.timeoutUs);
    const delays = timeoutUs > 0 && level.policy.timeoutAction === 'DELAY';
    const boundUs = timeoutUs === 0 || delays ? Math.max(timeoutUs, this.policy.queueTimeoutUs) : timeoutUs;
    table.rows[handle] = request.rows;
    table.level[handle] = level.number;
    table.enqueuedUs[handle] = enqueuedUs;
    table.refuseUs[handle] = sinceUs + boundUs;
    table.timeoutUs[handle] = sinceUs + (delays ? timeoutUs : boundUs);
    table.latestUs[handle] = latestUs;
    this.#expiries.set(handle, Math.min(table.timeoutUs[handle], latestUs));
    const group = this.queue.groupFor(request.shapeKey);
    this.queue.insert(handle, level.tier, group, atFront);
    level.occupied += 1;
    if (atFront) this.due.refresh(group);
    else this.due.added(group);
    return handle;
  }

  /**
   * @param frees false: it goes on counting for its level
   * @param refresh false: the caller refreshes the group's due time itself
   */
  leave(handle: Handle, frees = true, refresh = true): void {
    const group = this.queue.groupOf(handle);
    this.queue.remove(handle);
    this.#expiries.delete(handle);
    if (frees) this.levels.get(this.queue.table.level[handle] as number).occupied -= 1;
    this.queue.table.free(handle);
    if (refresh) this.due.refresh(group);
  }

  /** Takes every request out, in the order of service. */
  takeAll(): Handle[] {
    const handles: Handle[] = [];
    for (let first = this.queue.first(); first !== NONE; first = this.queue.first()) {
      handles.push(first);
      // The slot is freed only after the last one, so that no two of the handles are equal.
      this.queue.remove(first);
      this.#expiries.delete(first);
      this.levels.get(this.queue.table.level[first] as number).occupied -= 1;
      this.due.refresh(this.queue.groupOf(first));
    }
    for (const handle of handles) this.queue.table.free(handle);
    return handles;
  }

  /**
   * Everything whose time is over: refused, or moved behind its level where the policy says DELAY.
   * @param spareRows so many rows of requests that can merely no longer meet the objective stay, and nothing binds them
   */
  expire(nowUs: number, spareRows: number): Departed {
    if (this.#expiries.minKey > nowUs) return NOBODY;
    const { table } = this.queue;
    const expired: Handle[] = [];
    const shed: Handle[] = [];
    let spare = spareRows;
    while (this.#expiries.minKey <= nowUs) {
      const handle = this.#expiries.minHandle;
      if ((table.refuseUs[handle] as number) <= nowUs) {
        this.leave(handle);
        expired.push(handle);
      } else if ((table.latestUs[handle] as number) > nowUs) this.#delay(handle);
      else if (spare > 0) {
        spare -= table.rows[handle] as number;
        table.latestUs[handle] = Infinity;
        this.#expiries.set(handle, table.timeoutUs[handle] as number);
      } else {
        this.leave(handle);
        shed.push(handle);
      }
    }
    return { expired, shed };
  }

  #delay(handle: Handle): void {
    const { table } = this.queue;
    const group = this.queue.groupOf(handle);
    this.queue.remove(handle);
    this.queue.insert(handle, this.queue.tierOf(table.level[handle] as number, true), group, false);
    const refuseUs = table.refuseUs[handle] as number;
    table.timeoutUs[handle] = refuseUs;
    this.#expiries.set(handle, Math.min(refuseUs, table.latestUs[handle] as number));
  }
}
