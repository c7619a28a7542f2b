/** Memory of the whole process tree: idle, with 200 models, and over load-infer-unload cycles that ought to leave nothing. */
import { setTimeout as delay } from 'node:timers/promises';
import { MLP_INT8, TINY, type BenchModel } from '../models/catalog.js';
import { copyName, writeCopies, writeRepository } from '../models/repository.js';
import { treeMemory } from '../measure/process-tree.js';
import type { Figure, Goal } from '../report/figures.js';
import { httpBody, inferPath } from '../requests/http-request.js';
import { startPaceline, type PacelineTarget } from '../targets/paceline.target.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const MANY = 200;
const BASELINE_CYCLE = 5;
const MB = 1e6;

function figure(what: string, unit: string, goal: Goal, value: number): Figure {
  return { scenario: 'memory', what, unit, goal, values: [value] };
}

/** Lets the processes settle before their pages are counted. */
async function settledMb(server: PacelineTarget): Promise<number> {
  await delay(1500);
  return treeMemory(server.pid).pssBytes / MB;
}

async function inferOnce(server: PacelineTarget, model: BenchModel, servedAs: string): Promise<void> {
  const { bytes, headers } = httpBody(model, 0, 'binary');
  const answer = await fetch(`http://127.0.0.1:${server.httpPort}${inferPath(servedAs)}`, {
    method: 'POST',
    headers,
    body: new Uint8Array(bytes),
  });
  if (!answer.ok) throw new Error(`${servedAs}: HTTP ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
}

async function idle(rig: Rig): Promise<Figure[]> {
  const repository = writeRepository('memory-one', [TINY]);
  const server = await startPaceline({ entry: rig.options.serverEntry, core: rig.options.serverCore, repository });
  try {
    await inferOnce(server, TINY, TINY.name);
    return [figure('one tiny model, idle', 'MB', { atMost: 220 }, await settledMb(server))];
  } finally {
    await server.stop();
  }
}

async function many(rig: Rig): Promise<Figure[]> {
  const repository = writeCopies('memory-many', TINY, MANY);
  const server = await startPaceline({ entry: rig.options.serverEntry, core: rig.options.serverCore, repository, readyWithinMs: 300_000 });
  try {
    for (let i = 0; i < MANY; i++) await inferOnce(server, TINY, copyName(TINY, i));
    return [
      figure(`${MANY} tiny models`, 'MB', { atMost: 2000 }, await settledMb(server)),
      figure(`${MANY} tiny models: start to ready`, 's', { atMost: 60 }, server.readyAfterMs / 1000),
    ];
  } finally {
    await server.stop();
  }
}

async function cycles(rig: Rig): Promise<Figure[]> {
  const count = rig.options.cycles;
  const repository = writeRepository('memory-cycles', [TINY, MLP_INT8]);
  const flags = ['--model-control-mode', 'explicit', '--load-model', TINY.name];
  const server = await startPaceline({ entry: rig.options.serverEntry, core: rig.options.serverCore, repository, flags });
  try {
    let baselineMb = Number.NaN;
    for (let cycle = 1; cycle <= count; cycle++) {
      await server.control(MLP_INT8.name, 'load');
      await inferOnce(server, MLP_INT8, MLP_INT8.name);
      await server.control(MLP_INT8.name, 'unload');
      if (cycle === BASELINE_CYCLE) baselineMb = await settledMb(server);
      if (cycle % 20 === 0) rig.say(`  cycle ${cycle}: ${(treeMemory(server.pid).pssBytes / MB).toFixed(0)} MB`);
    }
    const endMb = await settledMb(server);
    rig.say(`  after cycle ${BASELINE_CYCLE} ${baselineMb.toFixed(1)} MB, after ${count} ${endMb.toFixed(1)} MB`);
    return [
      figure(`${count} load-infer-unload cycles: memory over that after ${BASELINE_CYCLE}`, 'x', { atMost: 1.1 }, endMb / baselineMb),
    ];
  } finally {
    await server.stop();
  }
}

export const memoryScenario: Scenario = async (rig) => {
  const figures = [...(await idle(rig)), ...(await many(rig)), ...(await cycles(rig))];
  return scenarioResult('memory', { figures });
};
