/**
 * A lane and its instances under a virtual clock: feeds arrivals to the batcher, runs its batches for the time they are
 * given and keeps a log. Checks at every step what must hold at every step; a broken rule throws with the time it broke.
 */
import type { BatchPolicy } from '../policy.js';
import { levelOf, queueTimeoutOf } from '../policy.js';
import type { DispatchReason } from '../decision.js';
import { DynamicBatcher } from '../dynamic-batcher.js';

export interface SimArrival {
  readonly atUs: number;
  readonly rows?: number;
  readonly shape?: string;
  readonly priority?: number;
  readonly timeoutUs?: number;
  /** The client leaves at that time. */
  readonly cancelUs?: number;
}

export interface SimBatch {
  readonly atUs: number;
  /** Indices of the arrivals, in the order of the batch. */
  readonly members: readonly number[];
  readonly rows: number;
  readonly reason: DispatchReason;
  readonly staged: boolean;
  /** When it began to execute: later than `atUs` where it was staged. */
  startedUs: number;
}

export interface SimLog {
  readonly batches: SimBatch[];
  readonly expired: { readonly atUs: number; readonly id: number }[];
  readonly shed: number[];
  /** Left the queue because the latency objective could no longer be met. */
  readonly late: { readonly atUs: number; readonly id: number }[];
  readonly cancelled: number[];
  /** When the batch of each arrival was over; by arrival. */
  readonly completedUs: Map<number, number>;
  endUs: number;
}

export interface SimOptions {
  readonly policy: BatchPolicy;
  readonly instances: number;
  readonly arrivals: readonly SimArrival[];
  readonly executionUs: (rows: number, shape: string, batch: number) => number;
  readonly batcher?: DynamicBatcher;
  /** Closed loop: called when an arrival is answered; returns the client's next one. */
  readonly onCompleted?: (id: number, nowUs: number) => SimArrival | undefined;
}

interface Waiting {
  readonly id: number;
  readonly handle: number;
  readonly level: number;
  readonly shape: string;
  readonly enqueuedUs: number;
  readonly rejectUs: number;
  /** Its timeout moves it behind others, in the order of timeouts: its delay then counts from the head there. */
  readonly movesBack: boolean;
  /** It came to a server with an idle instance and nobody waiting. */
  readonly toIdle: boolean;
}

interface Running {
  readonly members: readonly number[];
  readonly rows: number;
  readonly shape: string;
  readonly batch: number;
  readonly priorities: readonly number[];
  endUs: number;
}

export function simulate(options: SimOptions): SimLog {
  const { policy } = options;
  const delays = [policy.defaultQueue, ...policy.queueByLevel.values()].some((q) => q.timeoutAction === 'DELAY');
  const batcher = options.batcher ?? new DynamicBatcher(policy);
  const log: SimLog = { batches: [], expired: [], shed: [], late: [], cancelled: [], completedUs: new Map(), endUs: 0 };
  const arrivals: SimArrival[] = [...options.arrivals];
  const events: { atUs: number; order: number; run: () => void }[] = [];
  let order = 0;
  const at = (atUs: number, run: () => void): void => {
    let i = events.length;
    const event = { atUs, order: order++, run };
    while (i > 0 && (events[i - 1] as { atUs: number }).atUs > atUs) i -= 1;
    events.splice(i, 0, event);
  };
  const waiting = new Map<number, Waiting>();
  const byHandle = new Map<number, Waiting>();
  const instances: Running[][] = Array.from({ length: options.instances }, () => []);
  let nowUs = 0;
  const must = (ok: boolean, what: string): void => {
    if (!ok) throw new Error(`at ${nowUs} us: ${what}`);
  };
  const leave = (handle: number): Waiting => {
    const request = byHandle.get(handle);
    must(request !== undefined, `handle ${handle} is not waiting (lost or doubled)`);
    byHandle.delete(handle);
    waiting.delete((request as Waiting).id);
    return request as Waiting;
  };

  const arrive = (id: number): void => {
    const a = arrivals[id] as SimArrival;
    const request = { rows: a.rows ?? 1, priority: a.priority ?? 0, timeoutUs: a.timeoutUs ?? 0, shapeKey: a.shape ?? '' };
    const queued = batcher.enqueue(request, nowUs);
    const toIdle = waiting.size === 0 && instances.some((i) => i.length === 0);
    if (typeof queued !== 'number') {
      must(!toIdle || queued.reason === 'queue_full', `request ${id} was refused for its latency by an idle server`);
      log.shed.push(id);
      return;
    }
    const level = levelOf(policy, request.priority);
    const queuePolicy = policy.queueByLevel.get(level) ?? policy.defaultQueue;
    const timeoutUs = queueTimeoutOf(queuePolicy, request.timeoutUs);
    const rejects = timeoutUs > 0 && queuePolicy.timeoutAction === 'REJECT';
    const entry = {
      id,
      handle: queued,
      level,
      shape: request.shapeKey,
      enqueuedUs: nowUs,
      rejectUs: nowUs + (rejects ? timeoutUs : Math.max(timeoutUs, policy.queueTimeoutUs)),
      movesBack: timeoutUs > 0 && !rejects,
      toIdle,
    };
    must(!byHandle.has(queued), `handle ${queued} was given out twice`);
    waiting.set(id, entry);
    byHandle.set(queued, entry);
    if (a.cancelUs !== undefined) {
      at(a.cancelUs, () => {
        if (!waiting.has(id)) return;
        batcher.cancel(leave(queued).handle);
        log.cancelled.push(id);
      });
    }
  };

  const begin = (instance: Running[], staged: boolean): void => {
    const running = instance[0] as Running;
    if (staged) for (const priority of running.priorities) batcher.started(priority);
    const us = options.executionUs(running.rows, running.shape, running.batch);
    running.endUs = nowUs + us;
    (log.batches[running.batch] as SimBatch).startedUs = nowUs;
    at(running.endUs, () => {
      instance.shift();
      batcher.completed(running.shape, running.rows, us, running.members.length, nowUs);
      for (const id of running.members) {
        must(!log.completedUs.has(id), `request ${id} was executed twice`);
        log.completedUs.set(id, nowUs);
        const next = options.onCompleted?.(id, nowUs);
        if (next) {
          const nextId = arrivals.push(next) - 1;
          at(next.atUs, () => arrive(nextId));
        }
      }
      if (instance.length > 0) begin(instance, true);
    });
  };

  const turn = (): void => {
    for (;;) {
      const idle = instances.filter((i) => i.length === 0).length;
      const decision = batcher.decide(nowUs, { idle, stageable: instances.filter((i) => i.length === 1).length });
      for (const handle of decision.expired) {
        const request = leave(handle);
        must(request.rejectUs === nowUs, `request ${request.id} expired ${nowUs - request.rejectUs} us late`);
        log.expired.push({ atUs: nowUs, id: request.id });
      }
      for (const handle of decision.shed) {
        const request = leave(handle);
        must(policy.objectiveUs > 0, 'shed without an objective');
        must(!request.toIdle || policy.levels > 1, `request ${request.id} was shed although it had come to an idle server`);
        log.late.push({ atUs: nowUs, id: request.id });
      }
      for (const request of waiting.values()) must(request.rejectUs > nowUs, `request ${request.id} is still queued after its timeout`);
      if (decision.kind === 'wait') {
        if (idle > 0 && policy.maxQueueDelayUs > 0) {
          for (const request of waiting.values())
            must(
              request.movesBack || nowUs < request.enqueuedUs + policy.maxQueueDelayUs,
              `request ${request.id} is held beyond the queue delay`,
            );
        }
        must(decision.untilUs > nowUs, 'asked to be woken in the past');
        if (decision.untilUs !== Infinity) at(decision.untilUs, () => undefined);
        return;
      }
      check(
        decision.handles.map((h) => byHandle.get(h) as Waiting),
        decision.rows,
      );
      const members = decision.handles.map(leave);
      const target = instances.find((i) => i.length === (decision.staged ? 1 : 0)) as Running[];
      must(target !== undefined, 'dispatched without capacity');
      log.batches.push({
        atUs: nowUs,
        members: members.map((m) => m.id),
        rows: decision.rows,
        reason: decision.reason,
        staged: decision.staged,
        startedUs: Infinity,
      });
      const priorities = members.map((m) => arrivals[m.id]?.priority ?? 0);
      target.push({
        members: members.map((m) => m.id),
        rows: decision.rows,
        shape: members[0]?.shape ?? '',
        batch: log.batches.length - 1,
        priorities,
        endUs: 0,
      });
      if (!decision.staged) begin(target, false);
    }
  };

  const check = (members: Waiting[], rows: number): void => {
    const sum = members.reduce((n, m) => n + (arrivals[m.id]?.rows ?? 1), 0);
    must(sum === rows, `a batch claims ${rows} rows and has ${sum}`);
    must(rows <= policy.maxRows, `${rows} rows exceed the maximum ${policy.maxRows}`);
    must(
      members.every((m) => m.shape === members[0]?.shape),
      'a batch mixes shapes',
    );
    must(policy.batching || members.length === 1, 'a model without batching got a batch');
    if (policy.maxQueueDelayUs === 0 && !delays) {
      let first: Waiting | undefined;
      for (const w of waiting.values()) if (!first || w.level < first.level || (w.level === first.level && w.id < first.id)) first = w;
      must(first === members[0], `request ${first?.id} was passed over by ${members[0]?.id}`);
    }
  };

  for (let id = 0; id < options.arrivals.length; id++) at((arrivals[id] as SimArrival).atUs, () => arrive(id));
  for (let steps = 0; events.length > 0; steps++) {
    if (steps > 5_000_000) throw new Error('the simulation does not end');
    nowUs = (events[0] as { atUs: number }).atUs;
    while (events.length > 0 && (events[0] as { atUs: number }).atUs === nowUs) (events.shift() as { run: () => void }).run();
    turn();
  }
  log.endUs = nowUs;
  must(batcher.size === 0 && waiting.size === 0, `${waiting.size} requests were left waiting`);
  return log;
}
