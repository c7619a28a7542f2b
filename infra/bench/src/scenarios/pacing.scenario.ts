/**
 * Half load, where greedy batching runs small batches back to back and burns the core: latency against one inference alone,
 * CPU against a model whose every batch size is a preferred one, so that nothing ever waits for company. Once as the
 * server does it by itself, once with that latency as the model's objective.
 */
import { MLP, MLP_GREEDY, MLP_PACED } from '../models/catalog.js';
import { modelFile, writeRepository } from '../models/repository.js';
import { checkAnswers } from '../measure/answer-check.js';
import type { LoadSubject } from '../measure/load-sample.js';
import { ratios } from '../report/figures.js';
import { Limit } from '../targets/limit.js';
import { startPaceline } from '../targets/paceline.target.js';
import { interleavedRounds } from './rounds.js';
import { scenarioResult, type Scenario } from './scenario.js';

const SHARE_OF_CAPACITY = 0.5;
const MAX_CONNECTIONS = 512;
/** The latency that may be spent for processor time: so many times a single inference. */
const LATENCY_SHARE = 6;

export const pacingScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, connections, warmupMs, measureMs, limitMs, rounds, seed } = rig.options;
  writeRepository('pacing', [MLP]);
  const limit = Limit.start(serverCore, MLP, modelFile('pacing', MLP));
  const alone: number[] = [];
  for (let round = 0; round < rounds; round++) alone.push((await limit.measure(1, limitMs)).runP50Ms);
  const objectiveMs = LATENCY_SHARE * Math.min(...alone);
  const models = [
    MLP,
    MLP_GREEDY,
    { ...MLP_PACED, config: `parameters { key: "latency_objective_ms" value { string_value: "${objectiveMs.toFixed(1)}" } }` },
  ];
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository: writeRepository('pacing', models) });
  try {
    for (const model of models) await checkAnswers(server, model, 'binary', limit);
    const base = { form: 'binary', port: server.httpPort, warmupMs, measureMs, mayRefuse: true } as const;
    const closed = { ...base, kind: 'http-closed', model: MLP.name, connections } as const;
    const { ratePerS: capacity } = await rig.generator.run(closed, () => undefined);
    const open = { kind: 'http-open', ratePerS: capacity * SHARE_OF_CAPACITY, maxConnections: MAX_CONNECTIONS, seed } as const;
    const subjects = models.map<LoadSubject>(({ name: model }) => ({ series: model, target: server, plan: { ...base, ...open, model } }));
    const { samples } = await interleavedRounds(rig, subjects);
    const of = (series: string) => samples.filter((sample) => sample.series === series);
    const cpu = (series: string): number[] => of(series).map(({ cpuSecondsPer1000 }) => cpuSecondsPer1000);
    const p99 = (series: string): number[] => of(series).map(({ latency }) => latency.p99Ms);
    const shares = ratios(p99(MLP_GREEDY.name), alone).map((ratio) => ratio.toFixed(1));
    return scenarioResult('pacing', {
      samples,
      figures: [MLP, MLP_PACED].flatMap(({ name }) => [
        {
          scenario: 'pacing',
          what: `${name}: p99 at half load over one inference alone`,
          unit: 'x',
          goal: { atMost: LATENCY_SHARE },
          values: ratios(p99(name), alone),
        },
        {
          scenario: 'pacing',
          what: `${name}: CPU a request over that of greedy batching`,
          unit: '',
          goal: { atMost: 0.75 },
          values: ratios(cpu(name), cpu(MLP_GREEDY.name)),
        },
      ]),
      notes: [
        `offered ${open.ratePerS.toFixed(0)}/s of ${capacity.toFixed(0)}/s; one inference alone ${alone.map((ms) => ms.toFixed(2)).join(', ')} ms; greedy p99 ${shares.join(', ')} x`,
      ],
    });
  } finally {
    await limit.stop();
    await server.stop();
  }
};
