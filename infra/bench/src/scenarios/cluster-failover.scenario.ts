/**
 * kill -9 of a scheduler under load: how long until its lanes serve again, and that no request fails. kill -9 of a worker
 * with a running batch: how long until that batch runs at another one, from how much later than undisturbed its answer comes.
 */
import { INSTANT_600, SLOW } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import { nodeProcessesBelow } from '../measure/process-tree.js';
import { until } from '../measure/until.js';
import { seededRandom } from '../random.js';
import { ask, firstAnswer } from '../requests/ask.js';
import { setTimeout as delay } from 'node:timers/promises';
import { startCluster, type ClusterTarget } from '../targets/cluster.target.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const RATE_PER_S = 200;
const TRIES = 20;
const RESTART_WITHIN_MS = 30_000;

/** Value of one series without labels on a process's metrics port. */
async function metric(port: number, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const found = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1];
  if (found === undefined) throw new Error(`no ${name} at the metrics port ${port}`);
  return Number(found);
}

/** The scheduler that takes in the requests of the load. */
async function owner(cluster: ClusterTarget): Promise<number> {
  const { schedulers } = cluster.processes();
  const taken = (): Promise<number[]> => Promise.all(schedulers.map(({ metrics }) => metric(metrics, 'paceline_intake_requests_total')));
  const before = await taken();
  await ask(cluster.httpPort, INSTANT_600);
  const after = await taken();
  const rises = after.map((count, i) => count - (before[i] ?? count));
  const busiest = schedulers[rises.indexOf(Math.max(...rises))];
  if (busiest === undefined || Math.max(...rises) === 0) throw new Error('no scheduler took a request in');
  return busiest.pid;
}

async function killOwner(cluster: ClusterTarget): Promise<number> {
  const pid = await owner(cluster);
  process.kill(pid, 'SIGKILL');
  const killedAtMs = performance.now();
  const { rest } = await firstAnswer(cluster.httpPort, INSTANT_600);
  const tookMs = performance.now() - killedAtMs;
  await rest;
  return tookMs;
}

async function schedulerRound(rig: Rig, cluster: ClusterTarget, round: number): Promise<{ value: number; note: string }> {
  const { warmupMs, measureMs, seed } = rig.options;
  let took = Promise.resolve(Number.NaN);
  const plan = { kind: 'http-open', model: INSTANT_600.name, form: 'binary', port: cluster.httpPort, warmupMs } as const;
  const load = { ...plan, ratePerS: RATE_PER_S, maxConnections: 2048, seed: seed + round, measureMs: measureMs + 4000 };
  // The generator fails the scenario when any request of the load is not answered with success.
  const { answered, latency } = await rig.generator.run(load, () => {
    took = killOwner(cluster);
    took.catch(() => undefined);
  });
  const value = (await took) / 1000;
  await until('the killed scheduler runs again', () => isReady(cluster, 'schedulers'), RESTART_WITHIN_MS);
  return { value, note: `scheduler killed: ${answered} answers, none failed, the slowest after ${latency.maxMs.toFixed(0)} ms` };
}

async function isReady(cluster: ClusterTarget, role: 'schedulers' | 'workers'): Promise<boolean> {
  const ready = cluster.processes()[role].map(async ({ metrics }) => {
    const answer = await fetch(`http://127.0.0.1:${metrics}/ready`).catch(() => undefined);
    return answer?.ok === true;
  });
  return (await Promise.all(ready)).every(Boolean);
}

async function timed(cluster: ClusterTarget): Promise<number> {
  const startedAtMs = performance.now();
  await ask(cluster.httpPort, SLOW);
  return performance.now() - startedAtMs;
}

/** @returns milliseconds from the kill until the batch ran elsewhere, as far as the answer tells */
async function killWorker(cluster: ClusterTarget, undisturbedMs: number, random: () => number): Promise<number> {
  for (let i = 0; i < TRIES; i++) {
    await until(
      'an instance at each worker',
      async () =>
        (await isReady(cluster, 'workers')) && cluster.processes().workers.every(({ pid }) => nodeProcessesBelow(pid).length === 2),
      RESTART_WITHIN_MS,
    );
    const { workers } = cluster.processes();
    // Whatever rule the scheduler picks workers by, this is not in step with it.
    const victim = workers[Math.floor(random() * workers.length)];
    const answer = timed(cluster);
    await delay(undisturbedMs / 3);
    const sinceSentMs = performance.now();
    process.kill(victim?.pid ?? 0, 'SIGKILL');
    const latencyMs = await answer;
    const answeredAtMs = performance.now();
    // It was with the other one.
    if (latencyMs < undisturbedMs * 1.2) continue;
    return Math.max(0, answeredAtMs - sinceSentMs - undisturbedMs);
  }
  throw new Error(`the worker that was killed never had the request, ${TRIES} times`);
}

export const clusterFailoverScenario: Scenario = async (rig) => {
  const { serverCore, rounds, seed } = rig.options;
  const random = seededRandom(seed);
  const repository = writeRepository('cluster-failover', [INSTANT_600, SLOW]);
  const cluster = await startCluster({ cores: serverCore, repository, schedulers: 2, workers: 2 });
  const schedulerS: number[] = [];
  const workerS: number[] = [];
  const notes: string[] = [];
  try {
    await timed(cluster);
    const undisturbedMs = await timed(cluster);
    for (let round = 0; round < rounds; round++) {
      const { value, note } = await schedulerRound(rig, cluster, round);
      schedulerS.push(value);
      notes.push(note);
      workerS.push((await killWorker(cluster, undisturbedMs, random)) / 1000);
      rig.say(`  round ${round + 1}: scheduler ${value.toFixed(2)} s, worker ${workerS.at(-1)?.toFixed(3)} s`);
    }
  } finally {
    await cluster.stop();
  }
  const figure = (what: string, atMost: number, values: number[]) => ({
    scenario: 'cluster-failover',
    what,
    unit: 's',
    goal: { atMost },
    values,
  });
  return scenarioResult('cluster-failover', {
    notes,
    figures: [
      figure('from kill -9 of a scheduler until its lanes serve again', 3, schedulerS),
      figure('from kill -9 of a worker until its batch runs elsewhere', 0.5, workerS),
    ],
  });
};
