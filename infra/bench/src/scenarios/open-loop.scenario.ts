/**
 * Latency against rate: Poisson arrivals at shares of what the closed loop reached, with and without batching. The
 * curve, not a single figure, is what a user's clients will feel.
 */
import { MLP, MLP_UNBATCHED, type BenchModel } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import { sampleLoad, type LoadSubject } from '../measure/load-sample.js';
import { startPaceline, type PacelineTarget } from '../targets/paceline.target.js';
import { scenarioResult, type RatePoint, type Rig, type Scenario } from './scenario.js';

const SHARES = [0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9];
const QUICK_SHARES = [0.3, 0.6, 0.85];
const MAX_CONNECTIONS = 512;

async function curve(rig: Rig, server: PacelineTarget, model: BenchModel): Promise<RatePoint[]> {
  const { connections, warmupMs, measureMs, quick, seed, serverCore } = rig.options;
  const base = { model: model.name, form: 'binary', port: server.httpPort, warmupMs, measureMs } as const;
  const { ratePerS: capacity } = await rig.generator.run({ ...base, kind: 'http-closed', connections }, () => undefined);
  const points: RatePoint[] = [];
  for (const share of quick ? QUICK_SHARES : SHARES) {
    const ratePerS = capacity * share;
    const subject: LoadSubject = {
      series: model.name,
      target: server,
      plan: { ...base, kind: 'http-open', ratePerS, maxConnections: MAX_CONNECTIONS, seed },
    };
    const sample = await sampleLoad(rig.generator, subject, 0, serverCore);
    rig.say(
      `  ${model.name} at ${ratePerS.toFixed(0)}/s: p50 ${sample.latency.p50Ms.toFixed(1)} ms, p99 ${sample.latency.p99Ms.toFixed(1)} ms`,
    );
    points.push({ ...sample, offeredPerS: ratePerS });
  }
  return points;
}

export const openLoopScenario: Scenario = async (rig) => {
  const models = [MLP, MLP_UNBATCHED];
  const repository = writeRepository('open-loop', models);
  const server = await startPaceline({ entry: rig.options.serverEntry, core: rig.options.serverCore, repository });
  try {
    const points = [];
    for (const model of models) points.push(...(await curve(rig, server, model)));
    return scenarioResult('open-loop', { points });
  } finally {
    await server.stop();
  }
};
