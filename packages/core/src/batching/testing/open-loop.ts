/**
 * A lane under an open loop of one-row requests and a virtual clock, lean enough for tens of thousands of them: who is
 * answered when, who is refused, and how long the instances computed. simulate.ts checks the rules; this one measures.
 */
import { DynamicBatcher } from '../dynamic-batcher.js';
import type { BatchPolicy } from '../policy.js';

export interface OpenLoop {
  readonly policy: BatchPolicy;
  readonly instances?: number;
  /** Ascending, microseconds. */
  readonly arrivalsUs: readonly number[];
  readonly executionUs: (rows: number) => number;
  /** True: the batcher never learns what its batches cost, so it has no reason to cut or to hold them. */
  readonly eager?: boolean;
  /** How late the timers of the lane are, microseconds. */
  readonly timerLateUs?: number;
  /** How long an instance that has no staged batch waits for its next one after each, microseconds. */
  readonly turnaroundUs?: number;
}

interface Instance {
  running?: { readonly members: readonly number[]; readonly us: number; readonly endUs: number } | undefined;
  readonly staged: (readonly number[])[];
  readyUs: number;
}

export interface OpenLoopLog {
  /** By arrival, microseconds from arrival to reply; Infinity for those refused. */
  readonly latenciesUs: Float64Array;
  refusedAtDoor: number;
  refusedInQueue: number;
  batches: number;
  /** Sum of execution times, microseconds. */
  busyUs: number;
  endUs: number;
}

export function runOpenLoop(options: OpenLoop): OpenLoopLog {
  const { policy, arrivalsUs, executionUs, timerLateUs = 0, turnaroundUs = 0 } = options;
  const batcher = new DynamicBatcher(policy);
  if (options.eager) batcher.profile('').record = () => undefined;
  const latenciesUs = new Float64Array(arrivalsUs.length).fill(Infinity);
  const log: OpenLoopLog = { latenciesUs, refusedAtDoor: 0, refusedInQueue: 0, batches: 0, busyUs: 0, endUs: 0 };
  const instances = Array.from({ length: options.instances ?? 1 }, (): Instance => ({ staged: [], readyUs: 0 }));
  const byHandle: number[] = [];
  const request = { rows: 1, priority: 0, timeoutUs: 0, shapeKey: '' };
  let next = 0;
  let wakeUs = Infinity;
  const start = (instance: Instance, members: readonly number[], nowUs: number): void => {
    const us = executionUs(members.length);
    instance.running = { members, us, endUs: nowUs + us };
    log.batches += 1;
    log.busyUs += us;
  };
  for (;;) {
    const endUs = instances.reduce((least, { running }) => Math.min(least, running?.endUs ?? Infinity), Infinity);
    const nowUs = Math.min(arrivalsUs[next] ?? Infinity, endUs, wakeUs);
    if (nowUs === Infinity) break;
    if (wakeUs <= nowUs) wakeUs = Infinity;
    for (const instance of instances) {
      const { running } = instance;
      if (!running || running.endUs > nowUs) continue;
      log.endUs = nowUs;
      batcher.completed('', running.members.length, running.us, running.members.length, nowUs);
      for (const id of running.members) latenciesUs[id] = nowUs - (arrivalsUs[id] as number);
      instance.running = undefined;
      const staged = instance.staged.shift();
      if (staged) start(instance, staged, nowUs);
      else {
        instance.readyUs = nowUs + turnaroundUs;
        wakeUs = Math.min(wakeUs, instance.readyUs);
      }
    }
    for (; (arrivalsUs[next] ?? Infinity) <= nowUs; next++) {
      const handle = batcher.enqueue(request, nowUs);
      if (typeof handle === 'number') byHandle[handle] = next;
      else log.refusedAtDoor += 1;
    }
    for (;;) {
      const idle = instances.filter(({ running, readyUs }) => !running && readyUs <= nowUs);
      const stageable = instances.filter(({ running, staged }) => running && staged.length === 0);
      const decision = batcher.decide(nowUs, { idle: idle.length, stageable: stageable.length, live: instances.length });
      log.refusedInQueue += decision.shed.length + decision.expired.length;
      if (decision.kind === 'wait') {
        wakeUs = Math.min(wakeUs, decision.untilUs + timerLateUs);
        break;
      }
      const members = decision.handles.map((handle) => byHandle[handle] as number);
      if (decision.staged) {
        (stageable[0] as Instance).staged.push(members);
        for (let i = 0; i < members.length; i++) batcher.started(0);
      } else start(idle[0] as Instance, members, nowUs);
    }
  }
  return log;
}

/** The given share of the requests was answered within, microseconds; refused ones count as never answered. */
export function quantileUs({ latenciesUs }: OpenLoopLog, share: number): number {
  const sorted = latenciesUs.slice().sort();
  return sorted[Math.ceil(share * sorted.length) - 1] as number;
}

/** Share of all requests, refused ones included, that was answered within the objective. */
export function attainment({ latenciesUs }: OpenLoopLog, objectiveUs: number): number {
  let within = 0;
  for (const us of latenciesUs) if (us <= objectiveUs) within += 1;
  return within / latenciesUs.length;
}

/**
 * Arrivals recorded elsewhere, scaled in time to a mean rate.
 * @param gaps between requests, in any unit, 16 bits each, little-endian
 */
export function recordedArrivalsUs(gaps: Uint8Array, requestsPerSecond: number): number[] {
  const view = new DataView(gaps.buffer, gaps.byteOffset, gaps.byteLength);
  const units = Array.from({ length: gaps.length / 2 }, (_, i) => view.getUint16(2 * i, true));
  const total = units.reduce((sum, gap) => sum + gap, 0);
  const scale = (units.length / requestsPerSecond / total) * 1e6;
  let atUs = 0;
  return [0, ...units.map((gap) => (atUs += gap * scale))];
}

/** Independent requests at a mean rate. */
export function poissonArrivalsUs(requestsPerSecond: number, count: number, random: () => number): number[] {
  let atUs = 0;
  return Array.from({ length: count }, () => (atUs += (-Math.log(1 - random()) / requestsPerSecond) * 1e6));
}
