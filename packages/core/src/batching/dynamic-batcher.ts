/**
 * The dynamic batcher of one lane: requests in, decisions out, time as an argument. Semantics are those of Triton's
 * dynamic batcher (preferred sizes, queue delay, priority levels, queue policies), with three differences: requests of
 * different shapes wait in groups instead of cutting each other's batches, timeouts are due on time even when every
 * instance is busy, and every queue is finite. Where the configuration leaves the size to the server, batches are cut at
 * the learned peak (profile.ts) and a fresh burst is gathered for a moment (gather.ts).
 *
 * Invariant: each handle that `enqueue` or `requeue` returned leaves exactly once, through a dispatch, `expired` or
 * `cancel`. Cost: O(log n) an enqueue and O(batch size) a decision.
 */
import { Arrivals } from './arrivals.js';
import { formBatch, fullRows, membersOf, type FormedBatch } from './batch-former.js';
import type { Capacity, Decision, Dispatch, DispatchReason, Shed } from './decision.js';
import { DueGroups } from './due-groups.js';
import { holdUntil } from './gather.js';
import { IndexedHeap } from './indexed-heap.js';
import { PendingQueue, type ShapeGroup } from './pending-queue.js';
import { levelOf, queueTimeoutOf, type BatchPolicy, type LevelPolicy } from './policy.js';
import { BatchProfile } from './profile.js';
import { NONE, type Handle } from './request-table.js';
import { ServiceRate } from './service-rate.js';

/** Shapes with a profile of their own; further ones share one, so that odd shapes cannot exhaust memory. */
const MAX_PROFILES = 128;
/**
 * The longest expected execution behind which a batch is staged, microseconds. Staging saves a fixed fraction of a
 * millisecond per batch, but staged requests can no longer be cancelled, expire or be overtaken by a higher level.
 */
const STAGE_MAX_US = 30_000;
const NOTHING: readonly Handle[] = [];

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

interface Level {
  readonly number: number;
  readonly policy: LevelPolicy;
  readonly tier: number;
  /** Queued or staged. */
  occupied: number;
}

export class DynamicBatcher {
  readonly #queue: PendingQueue;
  readonly #levels = new Map<number, Level>();
  readonly #profiles = new Map<string, BatchProfile>();
  readonly #sharedProfile: BatchProfile;
  readonly #arrivals = new Arrivals();
  readonly #rate = new ServiceRate();
  /** By handle; key = when the timeout of the request acts. */
  readonly #expiries = new IndexedHeap();
  readonly #due: DueGroups;
  readonly #formed: FormedBatch = { count: 0, rows: 0, verdict: 'partial' };
  #heldSinceUs = -1;
  #draining = false;

  constructor(readonly policy: BatchPolicy) {
    this.#sharedProfile = new BatchProfile(policy.maxRows);
    this.#queue = new PendingQueue((key) => this.profile(key));
    this.#due = new DueGroups(policy, this.#queue);
  }

  /** Requests waiting. */
  get size(): number {
    return this.#queue.count;
  }

  /** What the batches of that shape were measured to cost. */
  profile(shapeKey: string): BatchProfile {
    let profile = this.#profiles.get(shapeKey);
    if (!profile) {
      profile = this.#profiles.size < MAX_PROFILES ? new BatchProfile(this.policy.maxRows) : this.#sharedProfile;
      if (profile !== this.#sharedProfile) this.#profiles.set(shapeKey, profile);
    }
    return profile;
  }

  /** Adds a request at the end of its level, or refuses it because the level is full. */
  enqueue(request: QueuedRequest, nowUs: number): Handle | Shed {
    const level = this.#levelOf(request.priority);
    if (level.occupied >= level.policy.maxQueueSize) {
      const { maxQueueSize: limit } = level.policy;
      return { kind: 'shed', code: 'RESOURCE_EXHAUSTED', reason: 'queue_full', limit, retryAfterMs: this.#rate.drainMs(this.#queue.count) };
    }
    this.#arrivals.record(nowUs);
    return this.#insert(request, level, nowUs, nowUs, false);
  }

  /**
   * Puts a request that had left back at the head of its level, whatever the level holds: it was admitted once. To keep
   * an order, requeue the last one first.
   * @param enqueuedUs when it first came: its age for the queue delay
   * @param sinceUs from when its timeout counts: `enqueuedUs` if it never executed, else now
   */
  requeue(request: QueuedRequest, enqueuedUs: number, sinceUs: number): Handle {
    return this.#insert(request, this.#levelOf(request.priority), enqueuedUs, sinceUs, true);
  }

  /** Takes every request out, in the order of service, e.g. to hand them to another batcher. */
  takeAll(): Handle[] {
    const handles: Handle[] = [];
    for (let first = this.#queue.first(); first !== NONE; first = this.#queue.first()) {
      handles.push(first);
      // The slot is freed only after the last one, so that no two of the handles are equal.
      this.#queue.remove(first);
      this.#expiries.delete(first);
      this.#level(this.#queue.table.level[first] as number).occupied -= 1;
      this.#due.refresh(this.#queue.groupOf(first));
    }
    for (const handle of handles) this.#queue.table.free(handle);
    return handles;
  }

  /** The client left. The handle must be one that is still queued. */
  cancel(handle: Handle): void {
    this.#leave(handle, true);
  }

  /** A member of a staged batch began to execute, or its batch ended otherwise: it no longer counts as queued. */
  started(priority: number): void {
    this.#levelOf(priority).occupied -= 1;
  }

  /** A batch of that shape took `executionUs` of an instance and answered `requests` requests. */
  completed(shapeKey: string, rows: number, executionUs: number, requests: number, nowUs: number): void {
    this.profile(shapeKey).record(rows, executionUs);
    this.#rate.observe(requests, this.#queue.count > 0, nowUs);
    this.#arrivals.answered(requests, nowUs);
  }

  /** From now on nothing is held back to fill a batch. */
  drain(): void {
    this.#draining = true;
  }

  /** What to do now. After a dispatch, decide again with the capacity that is left. */
  decide(nowUs: number, capacity: Capacity): Decision {
    const expired = this.#expiries.minKey <= nowUs ? this.#expire(nowUs) : NOTHING;
    const first = this.#queue.first();
    if (first === NONE) {
      this.#heldSinceUs = -1;
      return { kind: 'wait', untilUs: Infinity, why: 'empty', expired };
    }
    const group = this.#queue.groupOf(first);
    if (capacity.idle > 0) return this.#decideIdle(group, nowUs, capacity.idle, expired);
    this.#heldSinceUs = -1;
    if (capacity.stageable > 0 && this.#mayStage(group, nowUs))
      return this.#dispatch(group, this.#formed.verdict as DispatchReason, true, expired);
    return { kind: 'wait', untilUs: this.#expiries.minKey, why: 'busy', expired };
  }

  #decideIdle(group: ShapeGroup, nowUs: number, idle: number, expired: readonly Handle[]): Decision {
    if (this.policy.maxQueueDelayUs > 0 && !this.#draining) return this.#decideDelayed(group, nowUs, idle, expired);
    formBatch(this.policy, this.#queue, group, false, this.#formed);
    if (this.#formed.verdict !== 'partial') return this.#dispatch(group, this.#formed.verdict, false, expired);
    if (this.#draining) return this.#dispatch(group, 'drain', false, expired);
    const holdUs = this.#hold(group, nowUs);
    if (holdUs < 0) return this.#dispatch(group, this.#partialReason(), false, expired);
    return { kind: 'wait', untilUs: Math.min(holdUs, this.#expiries.minKey), why: 'gather', expired };
  }

  /** With a queue delay: the group whose turn it is if it is ready, else another that is full or due. */
  #decideDelayed(group: ShapeGroup, nowUs: number, idle: number, expired: readonly Handle[]): Decision {
    const dueUs = this.#due.delayOverUs(group);
    const late = nowUs >= dueUs;
    formBatch(this.policy, this.#queue, group, late, this.#formed);
    if (this.#formed.verdict !== 'partial') return this.#dispatch(group, this.#formed.verdict, false, expired);
    if (late) return this.#dispatch(group, this.#partialReason(), false, expired);
    const other = this.#due.otherThan(group, nowUs);
    if (other) {
      // The only idle instance would be busy with the other group when this one falls due: this one goes first.
      const otherUs = other.profile.worstUs(Math.min(other.rows, this.policy.maxRows)) ?? Infinity;
      if (idle === 1 && nowUs + otherUs > dueUs) return this.#dispatch(group, 'shape', false, expired);
      const otherLate = nowUs >= this.#due.delayOverUs(other);
      formBatch(this.policy, this.#queue, other, otherLate, this.#formed);
      if (this.#formed.verdict !== 'partial') return this.#dispatch(other, this.#formed.verdict, false, expired);
      if (otherLate) return this.#dispatch(other, this.#partialReason(), false, expired);
    }
    const nextDueUs = this.#due.nextUs > nowUs ? Math.min(dueUs, this.#due.nextUs) : dueUs;
    return { kind: 'wait', untilUs: Math.min(nextDueUs, this.#expiries.minKey), why: 'delay', expired };
  }

  /** Leaves a batch worth staging in `#formed`; see {@link STAGE_MAX_US} for what staging costs its members. */
  #mayStage(group: ShapeGroup, nowUs: number): boolean {
    if (this.#draining) return false;
    const table = this.#queue.table;
    const full = fullRows(this.policy, group);
    if (group.rows < full) return false;
    const expectedUs = group.profile.worstUs(full);
    if (expectedUs === undefined || expectedUs > STAGE_MAX_US) return false;
    formBatch(this.policy, this.#queue, group, false, this.#formed);
    if (this.#formed.verdict === 'partial') return false;
    const members = membersOf(this.#queue, group, this.#formed.count);
    return members.every((h) => (this.policy.levels === 1 || table.level[h] === 1) && this.#expiresAfter(h, nowUs + 2 * expectedUs));
  }

  #expiresAfter(handle: Handle, us: number): boolean {
    return (this.#queue.table.refuseUs[handle] as number) > us;
  }

  #hold(group: ShapeGroup, nowUs: number): number {
    if (!this.policy.batching || this.#queue.liveGroups > 1) return -1;
    if (this.#heldSinceUs < 0) this.#heldSinceUs = nowUs;
    return holdUntil(group.rows, group.rows / group.count, group.profile, this.#arrivals, this.#heldSinceUs, nowUs);
  }

  #partialReason(): DispatchReason {
    return this.#queue.liveGroups > 1 ? 'shape' : 'delay';
  }

  #dispatch(group: ShapeGroup, reason: DispatchReason, staged: boolean, expired: readonly Handle[]): Dispatch {
    if (this.#formed.count === 0) throw new Error('a batch without members was dispatched. This is a bug.');
    const handles = membersOf(this.#queue, group, this.#formed.count);
    for (const handle of handles) this.#leave(handle, !staged, false);
    this.#due.refresh(group);
    this.#heldSinceUs = -1;
    return { kind: 'dispatch', handles, rows: this.#formed.rows, reason, staged, expired };
  }

  /** Everything whose timeout is over: refused, or moved behind its level where the policy says DELAY. */
  #expire(nowUs: number): readonly Handle[] {
    const { table } = this.#queue;
    const expired: Handle[] = [];
    while (this.#expiries.minKey <= nowUs) {
      const handle = this.#expiries.minHandle;
      if ((table.refuseUs[handle] as number) > nowUs) this.#delay(handle);
      else {
        this.#leave(handle, true);
        expired.push(handle);
      }
    }
    return expired;
  }

  #delay(handle: Handle): void {
    const { table } = this.#queue;
    const group = this.#queue.groupOf(handle);
    this.#queue.remove(handle);
    this.#queue.insert(handle, this.#queue.tierOf(table.level[handle] as number, true), group, false);
    this.#expiries.set(handle, table.refuseUs[handle] as number);
  }

  #insert(request: QueuedRequest, level: Level, enqueuedUs: number, sinceUs: number, atFront: boolean): Handle {
    const { table } = this.#queue;
    const handle = table.take();
    const timeoutUs = queueTimeoutOf(level.policy, request.timeoutUs);
    const delays = timeoutUs > 0 && level.policy.timeoutAction === 'DELAY';
    const boundUs = timeoutUs === 0 || delays ? Math.max(timeoutUs, this.policy.queueTimeoutUs) : timeoutUs;
    table.rows[handle] = request.rows;
    table.level[handle] = level.number;
    table.enqueuedUs[handle] = enqueuedUs;
    table.refuseUs[handle] = sinceUs + boundUs;
    this.#expiries.set(handle, sinceUs + (delays ? timeoutUs : boundUs));
    const group = this.#queue.groupFor(request.shapeKey);
    this.#queue.insert(handle, level.tier, group, atFront);
    level.occupied += 1;
    if (atFront) this.#due.refresh(group);
    else this.#due.added(group);
    return handle;
  }

  #leave(handle: Handle, frees: boolean, refresh = true): void {
    const group = this.#queue.groupOf(handle);
    this.#queue.remove(handle);
    this.#expiries.delete(handle);
    if (frees) this.#level(this.#queue.table.level[handle] as number).occupied -= 1;
    this.#queue.table.free(handle);
    if (refresh) this.#due.refresh(group);
  }

  #levelOf(priority: number): Level {
    return this.#level(levelOf(this.policy, priority));
  }

  #level(number: number): Level {
    let level = this.#levels.get(number);
    if (!level) {
      level = {
        number,
        policy: this.policy.queueByLevel.get(number) ?? this.policy.defaultQueue,
        tier: this.#queue.tierOf(number, false),
        occupied: 0,
      };
      this.#levels.set(number, level);
    }
    return level;
  }
}
