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
  const { policy, arrivalsUs, executionUs, timerLateUs = 0 } = options;
  const batcher = new DynamicBatcher(policy);
  if (options.eager) batcher.profile('').record = () => undefined;
  const latenciesUs = new Float64Array(arrivalsUs.length).fill(Infinity);
  const log: OpenLoopLog = { latenciesUs, refusedAtDoor: 0, refusedInQueue: 0, batches: 0, busyUs: 0, endUs: 0 };
  const instances = options.instances ?? 1;
  let running: { readonly members: readonly number[]; readonly us: number; readonly endUs: number }[] = [];
  const byHandle: number[] = [];
  const request = { rows: 1, priority: 0, timeoutUs: 0, shapeKey: '' };
  let next = 0;
  let wakeUs = Infinity;
  for (;;) {
    const endUs = running.reduce((least, batch) => Math.min(least, batch.endUs), Infinity);
    const nowUs = Math.min(arrivalsUs[next] ?? Infinity, endUs, wakeUs);
    if (nowUs === Infinity) break;
    if (wakeUs <= nowUs) wakeUs = Infinity;
    for (const batch of running.filter((b) => b.endUs <= nowUs)) {
      log.endUs = nowUs;
      batcher.completed('', batch.members.length, batch.us, batch.members.length, nowUs);
      for (const id of batch.members) latenciesUs[id] = nowUs - (arrivalsUs[id] as number);
    }
    running = running.filter((batch) => batch.endUs > nowUs);
    for (; (arrivalsUs[next] ?? Infinity) <= nowUs; next++) {
      const handle = batcher.enqueue(request, nowUs);
      if (typeof handle === 'number') byHandle[handle] = next;
      else log.refusedAtDoor += 1;
    }
    for (;;) {
      const decision = batcher.decide(nowUs, { idle: instances - running.length, stageable: 0, live: instances });
      log.refusedInQueue += decision.shed.length + decision.expired.length;
      if (decision.kind === 'wait') {
        wakeUs = Math.min(wakeUs, decision.untilUs + timerLateUs);
        break;
      }
      const us = executionUs(decision.rows);
      running.push({ members: decision.handles.map((handle) => byHandle[handle] as number), us, endUs: nowUs + us });
      log.batches += 1;
      log.busyUs += us;
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
