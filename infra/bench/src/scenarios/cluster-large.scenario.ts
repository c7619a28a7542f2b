/** 600 KB tensors in and out: throughput against the embedded server's, and that Redis holds none of them. */
import { setTimeout as delay } from 'node:timers/promises';
import { connectRedis } from '@paceline/redis';
import { INSTANT_600K } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import type { LoadSubject } from '../measure/load-sample.js';
import { ratios } from '../report/figures.js';
import { startCluster, type ClusterTarget } from '../targets/cluster.target.js';
import { startPaceline } from '../targets/paceline.target.js';
import type { Target } from '../targets/target.js';
import { interleavedRounds, ratesOf } from './rounds.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const IN_FLIGHT = 16;
const LOOK_EVERY_MS = 50;
const MIB = 1024 * 1024;

/** Looks at the memory of a cluster's Redis again and again until it is stopped. @returns what stops it and gives the most that was seen */
function watchRedis(cluster: ClusterTarget): () => Promise<number> {
  const redis = connectRedis({ mode: 'standalone', urls: [`redis://127.0.0.1:${cluster.processes().redis.port}`], name: 'bench' });
  let watching = true;
  let mostBytes = Number.NaN;
  const look = async (): Promise<void> => {
    await redis.whenUp(5000);
    while (watching) {
      const used = /used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1];
      mostBytes = Math.max(Number.isNaN(mostBytes) ? 0 : mostBytes, Number(used));
      await delay(LOOK_EVERY_MS);
    }
  };
  const looking = look().finally(() => redis.close());
  return async () => {
    watching = false;
    await looking;
    return mostBytes;
  };
}

export const clusterLargeScenario: Scenario = async (rig: Rig) => {
  const { serverCore, serverEntry, warmupMs, measureMs } = rig.options;
  const repository = writeRepository('cluster-large', [INSTANT_600K]);
  const embedded = await startPaceline({ entry: serverEntry, core: serverCore, repository });
  const cluster = await startCluster({ cores: serverCore, repository });
  try {
    const subject = (series: string, target: Target): LoadSubject => ({
      series,
      target,
      plan: {
        kind: 'http-closed',
        form: 'binary',
        model: INSTANT_600K.name,
        port: target.httpPort,
        connections: IN_FLIGHT,
        warmupMs,
        measureMs,
      },
    });
    const stop = watchRedis(cluster);
    const { samples } = await interleavedRounds(rig, [subject('embedded', embedded), subject('cluster', cluster)]);
    const mostBytes = await stop();
    const shares = ratios(ratesOf(samples, 'cluster'), ratesOf(samples, 'embedded'));
    return scenarioResult('cluster-large', {
      samples,
      figures: [
        { scenario: 'cluster-large', what: "600 KB: rate, of the embedded server's", unit: '', goal: { atLeast: 0.6 }, values: shares },
        { scenario: 'cluster-large', what: 'most memory of Redis meanwhile', unit: 'MiB', goal: { atMost: 64 }, values: [mostBytes / MIB] },
      ],
    });
  } finally {
    await cluster.stop();
    await embedded.stop();
  }
};
