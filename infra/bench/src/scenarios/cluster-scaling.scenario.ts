/** Simulated accelerators, one a worker: whether n workers serve n times what one can. All processes share two cores. */
import { ACCELERATOR } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import { nodeProcessesBelow } from '../measure/process-tree.js';
import { sampleLoad, type LoadSample } from '../measure/load-sample.js';
import { until } from '../measure/until.js';
import type { Figure } from '../report/figures.js';
import { startCluster } from '../targets/cluster.target.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const WORKERS = [1, 2, 4, 8, 16];
/** What one worker can have with it, running and staged, and as much again that waits. */
const CLIENTS_PER_WORKER = 4 * ACCELERATOR.maxBatchSize;
const READY_WITHIN_MS = 60_000;
/** Twenty batches a second are few: a worker needs longer than others until it has compiled what it runs. */
const WARM_UP_FACTOR = 4;

/** Rows a second of one accelerator that always has a full batch. */
function capacityPerS(): number {
  const { alphaMs = Number.NaN, betaMs = Number.NaN } = ACCELERATOR.simulated ?? {};
  return (ACCELERATOR.maxBatchSize * 1000) / (alphaMs + betaMs * ACCELERATOR.maxBatchSize);
}

async function measure(rig: Rig, repository: string, workers: number): Promise<LoadSample[]> {
  const { serverCore, generatorCore, rounds, warmupMs, measureMs } = rig.options;
  const cluster = await startCluster({ cores: [serverCore, generatorCore], repository, workers });
  try {
    const series = `${workers} worker${workers === 1 ? '' : 's'}`;
    await until(
      'an instance at each worker',
      () => cluster.processes().workers.every(({ pid }) => nodeProcessesBelow(pid).length === 1),
      READY_WITHIN_MS,
    );
    const samples: LoadSample[] = [];
    for (let round = 0; round < rounds; round++) {
      const plan = { kind: 'http-closed', form: 'binary', model: ACCELERATOR.name, port: cluster.httpPort, measureMs } as const;
      const warmUp = round === 0 ? WARM_UP_FACTOR * warmupMs : warmupMs;
      const subject = { series, target: cluster, plan: { ...plan, warmupMs: warmUp, connections: CLIENTS_PER_WORKER * workers } };
      const sample = await sampleLoad(rig.generator, subject, round, serverCore);
      rig.say(`  round ${round + 1}: ${series} ${sample.ratePerS.toFixed(0)}/s`);
      samples.push(sample);
    }
    return samples;
  } finally {
    await cluster.stop();
  }
}

export const clusterScalingScenario: Scenario = async (rig) => {
  const repository = writeRepository('cluster-scaling', [ACCELERATOR]);
  const samples: LoadSample[] = [];
  const figures: Figure[] = [];
  for (const workers of WORKERS) {
    const measured = await measure(rig, repository, workers);
    samples.push(...measured);
    figures.push({
      scenario: 'cluster-scaling',
      what: `${workers} simulated accelerator${workers === 1 ? '' : 's'}: rate, of ${workers} times what one can`,
      unit: '',
      goal: { atLeast: 0.9 },
      values: measured.map(({ ratePerS }) => ratePerS / (workers * capacityPerS())),
    });
  }
  return scenarioResult('cluster-scaling', { samples, figures });
};
