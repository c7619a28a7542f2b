/**
 * kill -9 of one of two instance hosts under load: how long until two serve again, and that no request of the load fails. The
 * new host has proven itself when it answers while the surviving one stands still.
 */
import { MLP_TWO } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import { nodeProcessesBelow } from '../measure/process-tree.js';
import { until } from '../measure/until.js';
import { firstAnswer } from '../requests/ask.js';
import { startPaceline, type PacelineTarget } from '../targets/paceline.target.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const SHARE_OF_CAPACITY = 0.3;

/** @returns milliseconds from the kill to the first answer of the new host */
async function killOne(server: PacelineTarget): Promise<number> {
  const before = nodeProcessesBelow(server.pid);
  const [victim = 0, survivor = 0] = before;
  if (before.length !== 2) throw new Error(`expected 2 instance hosts, found ${before.length}`);
  process.kill(victim, 'SIGKILL');
  const killedAtMs = performance.now();
  await until('a new host', () => nodeProcessesBelow(server.pid).some((pid) => !before.includes(pid)));
  process.kill(survivor, 'SIGSTOP');
  try {
    const { rest } = await firstAnswer(server.httpPort, MLP_TWO);
    const tookMs = performance.now() - killedAtMs;
    process.kill(survivor, 'SIGCONT');
    await rest;
    return tookMs;
  } finally {
    process.kill(survivor, 'SIGCONT');
  }
}

async function measure(rig: Rig, server: PacelineTarget): Promise<{ values: number[]; notes: string[] }> {
  const { connections, warmupMs, measureMs, rounds, seed } = rig.options;
  const base = { model: MLP_TWO.name, form: 'binary', port: server.httpPort, warmupMs } as const;
  const { ratePerS: capacity } = await rig.generator.run({ ...base, kind: 'http-closed', connections, measureMs }, () => undefined);
  const ratePerS = capacity * SHARE_OF_CAPACITY;
  const values: number[] = [];
  const notes: string[] = [];
  for (let round = 0; round < rounds; round++) {
    let recovery = Promise.resolve(Number.NaN);
    const plan = { ...base, kind: 'http-open', ratePerS, maxConnections: 1024, seed: seed + round, measureMs: measureMs + 4000 } as const;
    // The generator fails the scenario when any request of the load is not answered with success.
    const { answered, latency } = await rig.generator.run(plan, () => {
      recovery = killOne(server);
      recovery.catch(() => undefined);
    });
    values.push((await recovery) / 1000);
    notes.push(
      `round ${round + 1}: ${answered} answers at ${ratePerS.toFixed(0)}/s, none failed, the slowest after ${latency.maxMs.toFixed(0)} ms`,
    );
    await until('two hosts', () => nodeProcessesBelow(server.pid).length === 2);
  }
  return { values, notes };
}

export const recoveryScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry } = rig.options;
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository: writeRepository('recovery', [MLP_TWO]) });
  try {
    const { values, notes } = await measure(rig, server);
    const what = 'from kill -9 of one of two hosts to the first answer of the new one';
    return scenarioResult('recovery', { figures: [{ scenario: 'recovery', what, unit: 's', goal: { atMost: 3 }, values }], notes });
  } finally {
    await server.stop();
  }
};
