/**
 * The latency objective of one lane, applied to its queue: which requests are too late, how many rows may start together,
 * and until when an under-full batch may wait. Knows the queue and never changes it. Nothing is held where equal batches
 * take unequal times, and nothing is judged before it was measured.
 */
import { Objective } from './objective.js';
import type { PendingQueue, ShapeGroup } from './pending-queue.js';
import type { BatchPolicy } from './policy.js';
import type { BatchProfile } from './profile.js';
import { NONE } from './request-table.js';
import { holdForStream, type Forming } from './stream-hold.js';
import type { Stream } from './stream.js';
import { Turnaround } from './turnaround.js';

/** Share of the processor time that a wait as long as the execution must save: the objective asks for less than delay 0. */
const WORTH = 0.05;
/**
 * Who is predicted to take up more than this share of the objective is refused at once. Predictions are wrong half of the
 * time: admitted up to the last moment, as many would be given up in the queue, and those before them go in small batches.
 */
const ADMITTED_SHARE = 0.94;
/** Share of the objective that no wait uses up: for what lies before the arrival that is seen, and for timers. */
const UNHELD_SHARE = 0.2;

export class ObjectiveRule {
  readonly #objective: Objective;
  readonly #turnaround = new Turnaround();

  constructor(
    private readonly policy: BatchPolicy,
    private readonly queue: PendingQueue,
    private readonly stream: Stream,
  ) {
    this.#objective = new Objective(policy.objectiveUs);
  }

  /** See {@link DynamicBatcher.completed}. */
  completed(profile: BatchProfile, executionUs: number, overheadUs: number, live: number, nowUs: number): void {
    this.#objective.recordOverhead(overheadUs);
    this.#turnaround.observe(executionUs, this.queue.rows >= this.#fullRows(profile), live, nowUs);
  }

  /** When a request that comes now must have started, microseconds; Infinity where nothing binds. */
  latestUs(shapeKey: string, rows: number, nowUs: number): number {
    return this.#objective.latestStartUs(this.queue.groupFor(shapeKey).profile, rows, nowUs);
  }

  /** Whether a request that comes now would be late even if every batch before it were full. */
  tooLate(
    request: { readonly shapeKey: string; readonly rows: number },
    latestUs: number,
    live: number,
    freeUs: number,
    nowUs: number,
  ): boolean {
    if (latestUs === Infinity) return false;
    const { profile } = this.queue.groupFor(request.shapeKey);
    const full = this.policy.batching ? this.#fullRows(profile) : request.rows;
    const answeredUs = this.#objective.answeredUs(profile, this.queue.rows, full, live, freeUs, this.#turnaround.us);
    return answeredUs > nowUs + ADMITTED_SHARE * this.#objective.budgetUs;
  }

  /** Requests at the head of `group` to give up for those behind them. */
  sacrifice(group: ShapeGroup, fullRows: number, live: number, nowUs: number): number {
    if (this.queue.order.length > 1 || !this.#binds(group)) return 0;
    const gapUs = this.stream.gapUs(0);
    const neededRate = group.rows / group.count / gapUs / live;
    return this.#objective.sacrifice(this.#heads(group), group.rows, fullRows, group.profile, neededRate, nowUs);
  }

  /** The most rows that can start now and be in time for the oldest; at least those of the first request. */
  rowsInTime(group: ShapeGroup, fullRows: number, nowUs: number): number {
    if (!this.#binds(group)) return fullRows;
    const most = Math.min(fullRows, group.rows);
    const rows = this.#objective.rowsWithin(this.#deadlineUs(group) - nowUs, group.profile, most);
    return rows >= most ? fullRows : Math.max(1, rows);
  }

  /** Whether a batch of `rows` rows that starts at `startUs` is in time for the oldest. */
  inTime(group: ShapeGroup, rows: number, startUs: number): boolean {
    return !this.#binds(group) || this.#objective.rowsWithin(this.#deadlineUs(group) - startUs, group.profile, rows) >= rows;
  }

  /** Whether the batch that waits would still be in time if it started at `us`. */
  endsBefore(group: ShapeGroup, us: number): boolean {
    return !this.#binds(group) || us <= this.#objective.windowUs(group.profile, this.#deadlineUs(group), group.rows);
  }

  /** Until when to wait for what a steady stream brings; -1 = not at all. */
  holdUntil(group: ShapeGroup, forming: Forming, nowUs: number): number {
    if (!group.profile.steady || !this.#binds(group)) return -1;
    const fullRows = this.#objective.targetRows(group.profile, forming.fullRows);
    if (forming.rows >= fullRows) return -1;
    const grown = Math.min(fullRows, forming.rows * (1 + 1 / forming.requests));
    const deadlineUs = this.#deadlineUs(group) - UNHELD_SHARE * this.#objective.budgetUs;
    const untilUs = this.#objective.windowUs(group.profile, deadlineUs, grown);
    return holdForStream({ ...forming, fullRows }, group.profile, this.stream, untilUs, WORTH, nowUs);
  }

  /** Rows of a full batch, exploration aside. */
  #fullRows(profile: BatchProfile): number {
    return Math.min(this.policy.maxRows, profile.peakRows ?? this.policy.maxRows);
  }

  /** False: the first request comes too late whatever is done, or nobody knows. */
  #binds(group: ShapeGroup): boolean {
    for (const tier of this.queue.order) {
      const head = group.lists[tier]?.head ?? NONE;
      if (head !== NONE) return this.queue.table.latestUs[head] !== Infinity;
    }
    return false;
  }

  #deadlineUs(group: ShapeGroup): number {
    return this.queue.oldestUs(group) + this.#objective.budgetUs;
  }

  *#heads(group: ShapeGroup): Iterable<{ readonly rows: number; readonly arrivedUs: number }> {
    const { table } = this.queue;
    const tier = this.queue.order[0] as number;
    for (let handle = group.lists[tier]?.head ?? NONE; handle !== NONE; handle = table.nextInGroup[handle] as number) {
      yield { rows: table.rows[handle] as number, arrivedUs: table.enqueuedUs[handle] as number };
    }
  }
}
