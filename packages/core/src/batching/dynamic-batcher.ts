/**
 * The dynamic batcher of one lane: requests in, decisions out, time as an argument. Semantics are those of Triton's
 * dynamic batcher (preferred sizes, queue delay, priority levels, queue policies), with three differences: requests of
 * different shapes wait in groups instead of cutting each other's batches, timeouts are due on time even when every
 * instance is busy, and every queue is finite. Where the configuration leaves the size to the server, batches are cut at
 * the learned peak (profile.ts), a fresh burst is gathered for a moment (gather.ts) and so is what a steady stream brings
 * (stream-hold.ts). A latency objective takes the place of preferred sizes and delay (objective-rule.ts).
 *
 * Invariant: each handle that `enqueue` or `requeue` returned leaves exactly once, through a dispatch, `expired`, `shed`
 * or `cancel`. Cost: O(log n) an enqueue and O(batch size) a decision.
 */
import { Arrivals } from './arrivals.js';
import { formBatch, fullRows, membersOf, type FormedBatch } from './batch-former.js';
import type { Capacity, Decision, Dispatch, DispatchReason, Shed, Wait } from './decision.js';
import { holdUntil } from './gather.js';
import { ObjectiveRule } from './objective-rule.js';
import type { PendingQueue, ShapeGroup } from './pending-queue.js';
import type { BatchPolicy } from './policy.js';
import { BatchProfile } from './profile.js';
import { NONE, type Handle } from './request-table.js';
import { ServiceRate } from './service-rate.js';
import { holdForStream, holdLimitUs, WORTH } from './stream-hold.js';
import { Stream } from './stream.js';
import { WaitingRoom, type Departed, type QueuedRequest } from './waiting-room.js';

/** Shapes with a profile of their own; further ones share one, so that odd shapes cannot exhaust memory. */
const MAX_PROFILES = 128;
/**
 * The longest expected execution behind which a batch is staged, microseconds. Staging saves a fixed fraction of a
 * millisecond per batch, but staged requests can no longer be cancelled, expire or be overtaken by a higher level.
 */
const STAGE_MAX_US = 30_000;

export class DynamicBatcher {
  readonly #room: WaitingRoom;
  readonly #queue: PendingQueue;
  readonly #profiles = new Map<string, BatchProfile>();
  readonly #sharedProfile: BatchProfile;
  readonly #arrivals = new Arrivals();
  readonly #stream = new Stream();
  readonly #rate = new ServiceRate();
  readonly #objective: ObjectiveRule | undefined;
  /** What left the queue in the decision that is being made. */
  #departed: Departed = { expired: [], shed: [] };
  readonly #formed: FormedBatch = { count: 0, rows: 0, verdict: 'partial' };
  #heldSinceUs = -1;
  /** Since the last decision an instance has been idle. */
  #idle = false;
  #live = 1;
  /** Latest start of the request that came last. */
  #newestLatestUs = Infinity;
  /** When an instance is expected to be free of what runs, if none is. */
  #freeUs = 0;
  /** What the batches that are staged behind it are expected to take. */
  #stagedUs = 0;
  #draining = false;

  constructor(readonly policy: BatchPolicy) {
    this.#sharedProfile = new BatchProfile(policy.maxRows);
    this.#room = new WaitingRoom(policy, (key) => this.profile(key));
    this.#queue = this.#room.queue;
    if (policy.objectiveUs > 0) this.#objective = new ObjectiveRule(policy, this.#queue, this.#stream);
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

  /** When what waits now will have been served at the observed rate, milliseconds: a time to come back for who was refused. */
  get retryAfterMs(): number {
    return this.#rate.drainMs(this.#queue.count);
  }

  /** The shapes that were executed, with what their batches were measured to cost. */
  get profiles(): Iterable<[shapeKey: string, profile: BatchProfile]> {
    return this.#profiles;
  }

  /** Adds a request at the end of its level, or refuses it: the level is full, or its answer would come too late. */
  enqueue(request: QueuedRequest, nowUs: number): Handle | Shed {
    const level = this.#room.levels.for(request.priority);
    this.#arrivals.record(nowUs);
    this.#stream.record(nowUs);
    if (level.occupied >= level.policy.maxQueueSize) return this.#refuse('queue_full', level.policy.maxQueueSize);
    const latestUs = this.#objective?.latestUs(request.shapeKey, request.rows, nowUs) ?? Infinity;
    // Who finds an instance idle and nobody waiting is never refused for a prediction.
    if (this.#objective && !(this.#idle && this.#queue.count === 0)) {
      const freeUs = this.#idle ? nowUs : Math.max(nowUs, this.#freeUs) + this.#stagedUs;
      if (this.#objective.tooLate(request, latestUs, this.#live, freeUs, nowUs))
        return this.#refuse('latency_objective', this.#queue.count);
    }
    this.#newestLatestUs = latestUs;
    return this.#room.add(request, level, nowUs, nowUs, latestUs, false);
  }

  /**
   * Puts a request that had left back at the head of its level, whatever the level holds: it was admitted once. To keep
   * an order, requeue the last one first. No latency objective binds it any more.
   * @param enqueuedUs when it first came: its age for the queue delay
   * @param sinceUs from when its timeout counts: `enqueuedUs` if it never executed, else now
   */
  requeue(request: QueuedRequest, enqueuedUs: number, sinceUs: number): Handle {
    return this.#room.add(request, this.#room.levels.for(request.priority), enqueuedUs, sinceUs, Infinity, true);
  }

  /** Takes every request out, in the order of service, e.g. to hand them to another batcher. */
  takeAll(): Handle[] {
    return this.#room.takeAll();
  }

  /** The client left. The handle must be one that is still queued. */
  cancel(handle: Handle): void {
    this.#room.leave(handle);
  }

  /** A member of a staged batch began to execute, or its batch ended otherwise: it no longer counts as queued. */
  started(priority: number): void {
    this.#room.levels.for(priority).occupied -= 1;
  }

  /**
   * A batch of that shape took `executionUs` of an instance and answered `requests` requests.
   * @param overheadUs from its start to its completion beside the execution
   */
  completed(shapeKey: string, rows: number, executionUs: number, requests: number, nowUs: number, overheadUs = 0): void {
    const profile = this.profile(shapeKey);
    profile.record(rows, executionUs);
    this.#objective?.completed(profile, executionUs, overheadUs, this.#live, nowUs);
    if (this.#stagedUs > 0) this.#freeUs = nowUs + this.#stagedUs;
    this.#stagedUs = 0;
    this.#stream.answered(requests, this.#queue.count);
    this.#rate.observe(requests, this.#queue.count > 0, nowUs);
    this.#arrivals.answered(requests, nowUs);
  }

  /** From now on nothing is held back to fill a batch. */
  drain(): void {
    this.#draining = true;
  }

  /** What to do now. After a dispatch, decide again with the capacity that is left. */
  decide(nowUs: number, capacity: Capacity): Decision {
    // A server that had nothing else to do, or has nothing better to do, serves what is late as well: a batch of it.
    const spares = capacity.idle > 0 && (this.#idle || this.#newestLatestUs <= nowUs);
    this.#departed = this.#room.expire(nowUs, spares ? this.policy.maxRows : 0);
    this.#idle = capacity.idle > 0;
    this.#live = Math.max(1, capacity.live ?? capacity.idle + capacity.stageable);
    const first = this.#queue.first();
    if (first === NONE) {
      this.#heldSinceUs = -1;
      return this.#wait(Infinity, 'empty');
    }
    const group = this.#queue.groupOf(first);
    if (capacity.idle > 0) return this.#decideIdle(group, nowUs, capacity.idle);
    this.#heldSinceUs = -1;
    if (capacity.stageable > 0 && this.#mayStage(group, nowUs))
      return this.#dispatch(group, this.#formed.verdict as DispatchReason, true, nowUs);
    return this.#wait(this.#room.nextExpiryUs, 'busy');
  }

  #decideIdle(first: ShapeGroup, nowUs: number, idle: number): Decision {
    if (this.policy.maxQueueDelayUs > 0 && !this.#draining) return this.#decideDelayed(first, nowUs, idle);
    const group = this.#objective ? this.#giveUp(this.#objective, first, nowUs) : first;
    const full = fullRows(this.policy, group);
    const largest = this.#objective?.rowsInTime(group, full, nowUs) ?? full;
    formBatch(this.policy, this.#queue, group, false, this.#formed, largest);
    if (this.#formed.verdict !== 'partial') return this.#dispatch(group, this.#formed.verdict, false, nowUs);
    if (this.#draining) return this.#dispatch(group, 'drain', false, nowUs);
    if (!this.policy.batching || this.#queue.liveGroups > 1) return this.#dispatch(group, this.#partialReason(), false, nowUs);
    if (this.#heldSinceUs < 0) this.#heldSinceUs = nowUs;
    const burstUs = this.#holdForBurst(group, nowUs);
    const streamUs = this.#holdForStream(group, largest, nowUs);
    if (burstUs < 0 && streamUs < 0) return this.#dispatch(group, this.#partialReason(), false, nowUs);
    return this.#wait(Math.min(Math.max(burstUs, streamUs), this.#room.nextExpiryUs), streamUs < burstUs ? 'gather' : 'stream');
  }

  /** Sheds the heads of `group` that would make its batch small for everybody. @returns the group whose turn it is then */
  #giveUp(objective: ObjectiveRule, group: ShapeGroup, nowUs: number): ShapeGroup {
    const count = objective.sacrifice(group, fullRows(this.policy, group), this.#live, nowUs);
    if (count === 0) return group;
    const handles = membersOf(this.#queue, group, count);
    for (const handle of handles) this.#room.leave(handle);
    const { expired, shed } = this.#departed;
    this.#departed = { expired, shed: [...shed, ...handles] };
    return this.#queue.groupOf(this.#queue.first());
  }

  #holdForBurst(group: ShapeGroup, nowUs: number): number {
    const untilUs = holdUntil(group.rows, group.rows / group.count, group.profile, this.#arrivals, this.#heldSinceUs, nowUs);
    return this.#objective?.endsBefore(group, untilUs) === false ? -1 : untilUs;
  }

  #holdForStream(group: ShapeGroup, fullRows: number, nowUs: number): number {
    const forming = { rows: group.rows, requests: group.count, fullRows };
    if (this.#objective) return this.#objective.holdUntil(group, forming, nowUs);
    if (this.policy.preferredRows.length > 0) return -1;
    const untilUs = holdLimitUs(group.rows, group.profile, this.#heldSinceUs);
    return holdForStream(forming, group.profile, this.#stream, untilUs, WORTH, nowUs);
  }

  /** With a queue delay: the group whose turn it is if it is ready, else another that is full or due. */
  #decideDelayed(group: ShapeGroup, nowUs: number, idle: number): Decision {
    const dueUs = this.#room.due.delayOverUs(group);
    const late = nowUs >= dueUs;
    formBatch(this.policy, this.#queue, group, late, this.#formed);
    if (this.#formed.verdict !== 'partial') return this.#dispatch(group, this.#formed.verdict, false, nowUs);
    if (late) return this.#dispatch(group, this.#partialReason(), false, nowUs);
    const other = this.#room.due.otherThan(group, nowUs);
    if (other) {
      // The only idle instance would be busy with the other group when this one falls due: this one goes first.
      const otherUs = other.profile.worstUs(Math.min(other.rows, this.policy.maxRows)) ?? Infinity;
      if (idle === 1 && nowUs + otherUs > dueUs) return this.#dispatch(group, 'shape', false, nowUs);
      const otherLate = nowUs >= this.#room.due.delayOverUs(other);
      formBatch(this.policy, this.#queue, other, otherLate, this.#formed);
      if (this.#formed.verdict !== 'partial') return this.#dispatch(other, this.#formed.verdict, false, nowUs);
      if (otherLate) return this.#dispatch(other, this.#partialReason(), false, nowUs);
    }
    const nextDueUs = this.#room.due.nextUs > nowUs ? Math.min(dueUs, this.#room.due.nextUs) : dueUs;
    return this.#wait(Math.min(nextDueUs, this.#room.nextExpiryUs), 'delay');
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
    if (this.#objective?.inTime(group, this.#formed.rows, Math.max(nowUs, this.#freeUs)) === false) return false;
    const members = membersOf(this.#queue, group, this.#formed.count);
    const safeUs = nowUs + 2 * expectedUs;
    return members.every((h) => (this.policy.levels === 1 || table.level[h] === 1) && (table.refuseUs[h] as number) > safeUs);
  }

  #partialReason(): DispatchReason {
    return this.#queue.liveGroups > 1 ? 'shape' : 'delay';
  }

  #wait(untilUs: number, why: Wait['why']): Wait {
    return { kind: 'wait', untilUs, why, ...this.#departed };
  }

  #refuse(reason: Shed['reason'], limit: number): Shed {
    return { kind: 'shed', code: 'RESOURCE_EXHAUSTED', reason, limit, retryAfterMs: this.retryAfterMs };
  }

  #dispatch(group: ShapeGroup, reason: DispatchReason, staged: boolean, nowUs: number): Dispatch {
    if (this.#formed.count === 0) throw new Error('a batch without members was dispatched. This is a bug.');
    const handles = membersOf(this.#queue, group, this.#formed.count);
    for (const handle of handles) this.#room.leave(handle, !staged, false);
    this.#room.due.refresh(group);
    this.#heldSinceUs = -1;
    // With several instances the one that was given work last is a guess: the others are free before.
    const us = (group.profile.meanUs(this.#formed.rows) ?? 0) / this.#live;
    if (staged) this.#stagedUs += us;
    else this.#freeUs = nowUs + us;
    return { kind: 'dispatch', handles, rows: this.#formed.rows, reason, staged, ...this.#departed };
  }
}
