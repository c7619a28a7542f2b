/** The p99 of a model at work while another of 50 MB is loaded and unloaded without a pause, against the p99 without that. */
import { MLP_INT8, MLP_UNBATCHED } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import { sampleLoad, type LoadSample, type LoadSubject } from '../measure/load-sample.js';
import { startPaceline, type PacelineTarget } from '../targets/paceline.target.js';
import { scenarioResult, type Scenario } from './scenario.js';

const RUNNING = MLP_INT8;
const LOADED = MLP_UNBATCHED;
const SHARE_OF_CAPACITY = 0.3;
const MAX_CONNECTIONS = 512;

/** Loads and unloads until `stop`, which resolves with the seconds that each load took. */
function keepReloading(server: PacelineTarget): { readonly stop: () => Promise<readonly number[]> } {
  let going = true;
  const cycles = (async () => {
    const loadS: number[] = [];
    while (going) {
      const beganAtMs = performance.now();
      await server.control(LOADED.name, 'load');
      loadS.push((performance.now() - beganAtMs) / 1000);
      await server.control(LOADED.name, 'unload');
    }
    return loadS;
  })();
  return {
    stop: () => {
      going = false;
      return cycles;
    },
  };
}

export const loadingScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, connections, warmupMs, measureMs, rounds, seed } = rig.options;
  const repository = writeRepository('loading', [RUNNING, LOADED]);
  const flags = ['--model-control-mode', 'explicit', '--load-model', RUNNING.name];
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository, flags });
  try {
    const base = { model: RUNNING.name, form: 'binary', port: server.httpPort, warmupMs, measureMs } as const;
    const { ratePerS: capacity } = await rig.generator.run({ ...base, kind: 'http-closed', connections }, () => undefined);
    const open = { kind: 'http-open', ratePerS: capacity * SHARE_OF_CAPACITY, maxConnections: MAX_CONNECTIONS } as const;
    const subject = (series: string, round: number): LoadSubject => ({
      series,
      target: server,
      plan: { ...base, ...open, seed: seed + round },
    });
    const samples: LoadSample[] = [];
    const values: number[] = [];
    const loadS: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const quiet = await sampleLoad(rig.generator, subject('nothing else', round), round, serverCore);
      const reloading = keepReloading(server);
      const busy = await sampleLoad(rig.generator, subject('another loads', round), round, serverCore).finally(async () => {
        loadS.push(...(await reloading.stop()));
      });
      rig.say(
        `  round ${round + 1}: p99 ${quiet.latency.p99Ms.toFixed(1)} ms, ${busy.latency.p99Ms.toFixed(1)} ms while another model loads`,
      );
      samples.push(quiet, busy);
      values.push(busy.latency.p99Ms / quiet.latency.p99Ms);
    }
    return scenarioResult('loading', {
      samples,
      figures: [{ scenario: 'loading', what: 'p99 while another model loads over p99 without', unit: 'x', goal: { atMost: 1.3 }, values }],
      notes: [`loads took ${loadS.map((seconds) => seconds.toFixed(1)).join(', ')} s`],
    });
  } finally {
    await server.stop();
  }
};
