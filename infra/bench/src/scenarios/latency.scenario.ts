/** What one client that waits for each answer pays above running the model in its own process. */
import { LARGE_TENSOR, TINY, type BenchModel } from '../models/catalog.js';
import { modelFile, writeRepository } from '../models/repository.js';
import { checkAnswers } from '../measure/answer-check.js';
import { sampleLoad, type LoadSample, type LoadSubject } from '../measure/load-sample.js';
import type { Figure } from '../report/figures.js';
import type { HttpForm } from '../requests/http-request.js';
import { Limit } from '../targets/limit.js';
import { startPaceline, type PacelineTarget } from '../targets/paceline.target.js';
import { scenarioResult, type LimitRound, type Rig, type Scenario } from './scenario.js';

interface LatencyCase {
  readonly model: BenchModel;
  readonly form: HttpForm;
  readonly atMostMs: number;
}

const CASES: readonly LatencyCase[] = [
  { model: TINY, form: 'json', atMostMs: 0.7 },
  { model: LARGE_TENSOR, form: 'binary', atMostMs: 2 },
];

async function measureCase(
  rig: Rig,
  server: PacelineTarget,
  { model, form, atMostMs }: LatencyCase,
): Promise<{ figure: Figure; samples: LoadSample[]; limits: LimitRound[] }> {
  const { serverCore, rounds, warmupMs, measureMs } = rig.options;
  const limit = Limit.start(serverCore, model, modelFile('latency', model));
  const samples: LoadSample[] = [];
  const limits: LimitRound[] = [];
  const above: number[] = [];
  try {
    await checkAnswers(server, model, form, limit);
    const subject: LoadSubject = {
      series: `${model.name}, 1 connection`,
      target: server,
      plan: { kind: 'http-closed', form, model: model.name, port: server.httpPort, connections: 1, warmupMs, measureMs },
    };
    for (let round = 0; round < rounds; round++) {
      const sample = await sampleLoad(rig.generator, subject, round, serverCore);
      const alone = await limit.measure(1, rig.options.limitMs);
      rig.say(`  round ${round + 1}: ${model.name} ${sample.latency.p50Ms.toFixed(3)} ms, in process ${alone.runP50Ms.toFixed(3)} ms`);
      samples.push(sample);
      limits.push({ round, sizes: [alone] });
      above.push(sample.latency.p50Ms - alone.runP50Ms);
    }
  } finally {
    await limit.stop();
  }
  return {
    figure: { scenario: 'latency', what: `${model.name}: median above in-process`, unit: 'ms', goal: { atMost: atMostMs }, values: above },
    samples,
    limits,
  };
}

export const latencyScenario: Scenario = async (rig) => {
  const repository = writeRepository(
    'latency',
    CASES.map(({ model }) => model),
  );
  const server = await startPaceline({ entry: rig.options.serverEntry, core: rig.options.serverCore, repository });
  try {
    const results = [];
    for (const each of CASES) results.push(await measureCase(rig, server, each));
    return scenarioResult('latency', {
      figures: results.map(({ figure }) => figure),
      samples: results.flatMap(({ samples }) => samples),
      limits: results.flatMap(({ limits }) => limits),
    });
  } finally {
    await server.stop();
  }
};
