/**
 * One scheduler process alone on its core: requests a second from the stream through its lane to a worker and back. Who
 * writes the entries and takes the batches runs, with Redis, on the other core.
 */
import { on } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { startRedis } from '@paceline/testkit';
import { INSTANT_600 } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import { processCpuSeconds } from '../measure/process-tree.js';
import { SCHEDULER_ENTRY } from '../paths.js';
import { freePort } from '../targets/free-port.js';
import { endProcess, forkPinned, spawnPinned } from '../targets/pinned.js';
import { nodeFlags } from '../targets/server-process.js';
import type { SinkMessage, SinkPlan } from '../targets/sink-worker.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

/** Enough that batches are full, few enough that no queue is. */
const IN_FLIGHT = 1024;
/** From the start of both processes to the model being loaded. */
const READY_WITHIN_MS = 30_000;

interface Measured {
  readonly requestsPerS: number;
  readonly sinkShare: number;
  readonly schedulerShare: number;
}

async function measure(sink: ChildProcess, scheduler: ChildProcess, plan: SinkPlan): Promise<Measured> {
  const cpuSeconds = (): number => processCpuSeconds(scheduler.pid ?? 0);
  let cpuAtOpen = Number.NaN;
  const limit = new AbortController();
  const tooLate = setTimeout(() => limit.abort(new Error(`no model was loaded within ${READY_WITHIN_MS} ms`)), READY_WITHIN_MS);
  for await (const [message] of on(sink, 'message', { close: ['exit'], signal: limit.signal }) as AsyncIterable<[SinkMessage]>) {
    if (message.type === 'ready') {
      clearTimeout(tooLate);
      sink.send(plan);
    }
    if (message.type === 'error') throw new Error(`the sink worker: ${message.text}`);
    if (message.type === 'window-open') cpuAtOpen = cpuSeconds();
    if (message.type === 'result') {
      const schedulerShare = ((cpuSeconds() - cpuAtOpen) * 1000) / plan.measureMs;
      return { requestsPerS: message.requestsPerS, sinkShare: message.cpuShare, schedulerShare };
    }
  }
  throw new Error('the sink worker ended');
}

async function round(rig: Rig, repository: string): Promise<Measured> {
  const { serverCore, generatorCore, warmupMs, measureMs } = rig.options;
  const redis = await startRedis();
  const sink = forkPinned(generatorCore, 'targets/sink-worker.main', [redis.url, INSTANT_600.name, String(IN_FLIGHT)]);
  const flags = [`--redis-url=${redis.url}`, `--model-repository=${repository}`, `--metrics-port=${await freePort()}`];
  const scheduler = spawnPinned(serverCore, [...nodeFlags(rig.options.serverEntry), SCHEDULER_ENTRY, ...flags]);
  for (const stream of [scheduler.stdout, scheduler.stderr]) stream?.resume();
  try {
    return await measure(sink, scheduler, { warmupMs, measureMs });
  } finally {
    await endProcess(scheduler, 1000);
    await endProcess(sink, 1000);
    await redis.stop();
  }
}

export const clusterSchedulerScenario: Scenario = async (rig) => {
  const repository = writeRepository('cluster-scheduler', [INSTANT_600]);
  const values: number[] = [];
  const notes: string[] = [];
  for (let i = 0; i < rig.options.rounds; i++) {
    const { requestsPerS, sinkShare, schedulerShare } = await round(rig, repository);
    values.push(requestsPerS);
    const us = (schedulerShare * 1e6) / requestsPerS;
    notes.push(
      `round ${i + 1}: the scheduler took ${schedulerShare.toFixed(2)} of its core, ${us.toFixed(1)} us a request; the sink ${sinkShare.toFixed(2)} of the other`,
    );
    rig.say(`  round ${i + 1}: ${requestsPerS.toFixed(0)}/s`);
  }
  const what = 'one scheduler process, 600 B inline: requests from the stream to a worker and back';
  return scenarioResult('cluster-scheduler', {
    notes,
    figures: [{ scenario: 'cluster-scheduler', what, unit: '/s', goal: { atLeast: 30_000 }, values }],
  });
};
