/**
 * Three times as many requests as the server can answer, whatever it does: it must go on answering at the rate it has at
 * capacity, refuse the rest at once, and keep the accepted ones no longer than its queue takes. Two models, because refusing
 * takes from the same core: 110 KB requests that take milliseconds to answer, and 4 KB requests that take a quarter of one.
 */
import { MLP_QUEUED, OCR_QUEUED, QUEUE_SIZE, type BenchModel } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import { sampleLoad, type LoadSample } from '../measure/load-sample.js';
import type { Figure } from '../report/figures.js';
import { startPaceline, type PacelineTarget } from '../targets/paceline.target.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const TIMES_CAPACITY = 3;
/** More than the queue and two batches hold, so that requests are refused by the server and not held back by the generator. */
const MAX_CONNECTIONS = 1024;

interface Overload {
  readonly samples: readonly LoadSample[];
  readonly goodput: number;
  readonly refusalMs: number;
  readonly shareOfBound: number;
}

async function overload(rig: Rig, server: PacelineTarget, model: BenchModel, round: number): Promise<Overload> {
  const { serverCore, connections, warmupMs, measureMs, seed } = rig.options;
  const base = { model: model.name, form: 'binary', port: server.httpPort, warmupMs, measureMs } as const;
  const closed = { ...base, kind: 'http-closed', connections } as const;
  const atCapacity = await sampleLoad(
    rig.generator,
    { series: `${model.name} at capacity`, target: server, plan: closed },
    round,
    serverCore,
  );
  const ratePerS = atCapacity.ratePerS * TIMES_CAPACITY;
  const open = { ...base, kind: 'http-open', ratePerS, maxConnections: MAX_CONNECTIONS, seed: seed + round, mayRefuse: true } as const;
  const overloaded = await sampleLoad(rig.generator, { series: `${model.name} offered 3x`, target: server, plan: open }, round, serverCore);
  const { refused, latency } = overloaded;
  if (refused === undefined) throw new Error(`nothing was refused at ${ratePerS.toFixed(0)}/s`);
  // Behind a full queue there are one batch that runs and one that is staged.
  const boundMs = ((QUEUE_SIZE + 2 * model.maxBatchSize) * 1000) / overloaded.ratePerS;
  rig.say(
    `  round ${round + 1}: ${model.name} ${atCapacity.ratePerS.toFixed(0)}/s at capacity, ${overloaded.ratePerS.toFixed(0)}/s of ${ratePerS.toFixed(0)}/s answered, ` +
      `${refused.count} refused after ${refused.latency.p50Ms.toFixed(2)} ms, accepted p99 ${latency.p99Ms.toFixed(0)} ms of ${boundMs.toFixed(0)} ms`,
  );
  return {
    samples: [atCapacity, overloaded],
    goodput: overloaded.ratePerS / atCapacity.ratePerS,
    refusalMs: refused.latency.p50Ms,
    shareOfBound: latency.p99Ms / boundMs,
  };
}

export const overloadScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, rounds } = rig.options;
  const models = [OCR_QUEUED, MLP_QUEUED];
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository: writeRepository('overload', models) });
  const samples: LoadSample[] = [];
  const figures: Figure[] = [];
  try {
    for (const model of models) {
      const measured: Overload[] = [];
      for (let round = 0; round < rounds; round++) measured.push(await overload(rig, server, model, round));
      samples.push(...measured.flatMap((each) => each.samples));
      const figure = (what: string, unit: string, goal: Figure['goal'], pick: (each: Overload) => number): Figure => ({
        scenario: 'overload',
        what: `${model.name}: ${what}`,
        unit,
        goal,
        values: measured.map(pick),
      });
      figures.push(
        figure('goodput at 3x over the rate at capacity', '', { atLeast: 0.9 }, ({ goodput }) => goodput),
        figure('median answer of a refused request', 'ms', { atMost: 10 }, ({ refusalMs }) => refusalMs),
        figure('p99 of accepted over what a full queue and two batches take', '', { atMost: 1 }, ({ shareOfBound }) => shareOfBound),
      );
    }
  } finally {
    await server.stop();
  }
  return scenarioResult('overload', { samples, figures });
};
