/** 1,000 tiny models loaded at the start of a server in mode explicit: memory of the whole tree, and the time until all are ready. */
import { setTimeout as delay } from 'node:timers/promises';
import { TINY } from '../models/catalog.js';
import { copyName, writeCopies } from '../models/repository.js';
import { treeMemory } from '../measure/process-tree.js';
import type { Goal } from '../report/figures.js';
import { httpBody, inferPath } from '../requests/http-request.js';
import { startPaceline } from '../targets/paceline.target.js';
import { scenarioResult, type Scenario } from './scenario.js';

const COUNT = 1000;
const QUICK_COUNT = 100;
const SETTLE_MS = 2000;

export const manyScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, quick } = rig.options;
  const count = quick ? QUICK_COUNT : COUNT;
  const repository = writeCopies(`many-${count}`, TINY, count);
  const flags = ['--model-control-mode', 'explicit', '--load-model', '*'];
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository, flags, readyWithinMs: 600_000 });
  try {
    const { bytes, headers } = httpBody(TINY, 0, 'json');
    for (let i = 0; i < count; i++) {
      const url = `http://127.0.0.1:${server.httpPort}${inferPath(copyName(TINY, i))}`;
      const answer = await fetch(url, { method: 'POST', headers, body: new Uint8Array(bytes) });
      if (!answer.ok) throw new Error(`${copyName(TINY, i)}: HTTP ${answer.status} ${await answer.text()}`);
      await answer.arrayBuffer();
    }
    await delay(SETTLE_MS);
    const { pssBytes, processes } = treeMemory(server.pid);
    const figure = (what: string, unit: string, goal: Goal, value: number) => ({ scenario: 'many', what, unit, goal, values: [value] });
    return scenarioResult('many', {
      figures: [
        figure(`${count} tiny models, each used once`, 'GB', { atMost: (6 * count) / COUNT }, pssBytes / 1e9),
        // As fast a model as 200 of them in a minute.
        figure(`${count} tiny models: start to ready`, 's', { atMost: (300 * count) / COUNT }, server.readyAfterMs / 1000),
      ],
      notes: [`${processes} processes`],
    });
  } finally {
    await server.stop();
  }
};
