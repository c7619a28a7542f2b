/**
 * What refusing, timing and counting cost: CPU a request against another build of the server (`--baseline`) or, without one,
 * against the same server with its metrics endpoint off; and the CPU of a request that is refused.
 */
import { FULL, TINY } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import type { LoadSample, LoadSubject } from '../measure/load-sample.js';
import { processCpuSeconds } from '../measure/process-tree.js';
import { startPaceline, type PacelineTarget } from '../targets/paceline.target.js';
import { interleavedRounds } from './rounds.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const US_PER_REQUEST = 1000;

/** Microseconds of CPU that the server's own process spends on a refused request, HTTP included. */
async function refusalUs(rig: Rig, server: PacelineTarget): Promise<number> {
  const { connections, warmupMs, measureMs } = rig.options;
  const load = { kind: 'http-closed', form: 'json', model: FULL.name, port: server.httpPort, connections, mayRefuse: true } as const;
  let cpuAtOpen = Number.NaN;
  const { refused, answered } = await rig.generator.run({ ...load, warmupMs, measureMs }, () => {
    cpuAtOpen = processCpuSeconds(server.pid);
  });
  const seconds = processCpuSeconds(server.pid) - cpuAtOpen;
  if (refused === undefined || refused.count < 10 * answered)
    throw new Error(`${refused?.count ?? 0} refused beside ${answered} answered: too few`);
  return (seconds * 1e6) / (refused.count + answered);
}

export const overheadScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, baselineEntry, connections, warmupMs, measureMs } = rig.options;
  const repository = writeRepository('overhead', [TINY, FULL]);
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository });
  const baseline = await startPaceline({
    entry: baselineEntry ?? serverEntry,
    core: serverCore,
    repository,
    flags: baselineEntry === undefined ? ['--allow-metrics=false'] : [],
  });
  try {
    const subject = (series: string, target: PacelineTarget): LoadSubject => ({
      series,
      target,
      plan: { kind: 'http-closed', form: 'json', model: TINY.name, port: target.httpPort, connections, warmupMs, measureMs },
    });
    const { samples } = await interleavedRounds(rig, [subject('this server', server), subject('baseline', baseline)]);
    const cpuUs = (series: string): number[] =>
      samples.filter((sample: LoadSample) => sample.series === series).map(({ cpuSecondsPer1000 }) => cpuSecondsPer1000 * US_PER_REQUEST);
    const before = cpuUs('baseline');
    const refusal = await refusalUs(rig, server);
    return scenarioResult('overhead', {
      samples,
      figures: [
        {
          scenario: 'overhead',
          what: `CPU a request above ${baselineEntry === undefined ? 'the server without metrics' : 'the baseline'}`,
          unit: 'us',
          goal: { atMost: 15 },
          values: cpuUs('this server').map((us, i) => us - (before[i] ?? Number.NaN)),
        },
      ],
      notes: [`a refused request costs the server's process ${refusal.toFixed(1)} us of CPU, parsing it included`],
    });
  } finally {
    await baseline.stop();
    await server.stop();
  }
};
