/**
 * Open loop over HTTP: send times are drawn beforehand and latency counts from them, so a server that stalls is charged
 * for every request that was due meanwhile. A request that finds no idle connection opens one, up to a maximum, and
 * waits in line beyond that.
 */
import { benchModel } from '../models/catalog.js';
import { poissonTimesMs } from '../random.js';
import { httpRequests } from '../requests/http-request.js';
import { conversationTimesMs } from '../trace.js';
import { HttpConnection } from './http-connection.js';
import type { LoadPlan, LoadResult } from './load-plan.js';
import { Recorder } from './recorder.js';
import { breaker, measureWindow } from './window.js';

/** Timers are coarse (1 ms): the last stretch before a send time is waited in turns of the event loop. */
const TIMER_MARGIN_MS = 2;

interface Slot {
  connection: HttpConnection;
  dueAtMs: number;
  sentAtMs: number;
}

export async function httpOpenLoad(plan: Extract<LoadPlan, { kind: 'http-open' }>, onWindowOpen: () => void): Promise<LoadResult> {
  const requests = httpRequests(benchModel(plan.model), plan.form);
  const durationMs = plan.warmupMs + plan.measureMs + 1000;
  const times =
    plan.arrivals === 'conversation-trace'
      ? conversationTimesMs(plan.ratePerS, durationMs)
      : poissonTimesMs(plan.ratePerS, durationMs, plan.seed);
  const recorder = new Recorder(plan.objectiveMs);
  const { broken, break: breakLoad } = breaker();
  const idle: Slot[] = [];
  const waiting: number[] = [];
  let opened = 0;
  let next = 0;
  let sending = true;

  const sendOn = (slot: Slot, dueAtMs: number): void => {
    const request = requests[next++ % requests.length];
    if (request === undefined) return;
    slot.dueAtMs = dueAtMs;
    slot.sentAtMs = performance.now();
    recorder.sent(dueAtMs, slot.sentAtMs);
    slot.connection.send(request);
  };
  const release = (slot: Slot): void => {
    const due = sending ? waiting.shift() : undefined;
    if (due === undefined) idle.push(slot);
    else sendOn(slot, due);
  };
  const open = async (): Promise<void> => {
    opened++;
    const slot: Slot = {
      dueAtMs: 0,
      sentAtMs: 0,
      connection: await HttpConnection.open(
        plan.port,
        (status) => {
          if (status === 200) recorder.succeeded(slot.dueAtMs, performance.now());
          else if ((status === 429 || status === 504) && plan.mayRefuse) recorder.refused(slot.sentAtMs, performance.now());
          else recorder.failure(`HTTP ${status}`);
          release(slot);
        },
        breakLoad,
      ),
    };
    all.push(slot);
    release(slot);
  };
  const all: Slot[] = [];
  for (let i = 0; i < Math.min(64, plan.maxConnections); i++) await open();

  const startMs = performance.now();
  let due = 0;
  const tick = (): void => {
    if (!sending) return;
    const nowMs = performance.now();
    for (let at = times[due]; at !== undefined && startMs + at <= nowMs; at = times[++due]) {
      const slot = idle.pop();
      if (slot !== undefined) sendOn(slot, startMs + at);
      else {
        waiting.push(startMs + at);
        if (opened < plan.maxConnections) open().catch(breakLoad);
      }
    }
    const untilNextMs = startMs + (times[due] ?? Number.POSITIVE_INFINITY) - performance.now();
    if (untilNextMs > TIMER_MARGIN_MS) setTimeout(tick, Math.min(untilNextMs - TIMER_MARGIN_MS, 100));
    else setImmediate(tick);
  };
  tick();
  try {
    return await measureWindow(plan, { recorder, broken, onWindowOpen });
  } finally {
    sending = false;
    for (const slot of all) slot.connection.close();
  }
}
