/**
 * One process of a cluster dies or is stopped under load. Whatever can be done elsewhere is done elsewhere: no request
 * fails, and what was interrupted goes on within the time that the cluster promises.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { theOne } from './cluster/faults.js';
import { MODELS, ShakenCluster } from './cluster/shaken-cluster.js';
import { within } from './support/until.js';

const SEED = 20_261_130;
const DEADLINE_MS = 20_000;
const SERVED_AGAIN_WITHIN_MS = 3000;
/** Longer than the lease of a partition, and than a process may miss its heartbeats. */
const AWAY_MS = 4000;

describe('a cluster of two schedulers and three workers', () => {
  let shaken: ShakenCluster;
  beforeAll(async () => {
    shaken = await ShakenCluster.start({ gateways: 2, schedulers: 2, workers: 3 }, { seed: SEED, deadlineMs: DEADLINE_MS });
  }, 90_000);
  afterAll(() => shaken?.end(), 60_000);

  it.each([0, 1])(
    'serves every model again within 3 s when scheduler %i is killed, and fails no request',
    async (index) => {
      const { cluster, books } = shaken;
      const victim = theOne('scheduler', index)(cluster);
      const killedMs = performance.now();
      process.kill(victim.pid, 'SIGKILL');
      await shaken.answers();
      await cluster.replaced(victim);
      await shaken.well();
      expect(books.breaches).toEqual([]);
      expect(Math.max(...MODELS.map((model) => books.longestGapMs(killedMs, model)))).toBeLessThan(SERVED_AGAIN_WITHIN_MS);
    },
    60_000,
  );

  it('runs the batches of a killed worker elsewhere, fails no request, and takes it back', async () => {
    const { cluster, books } = shaken;
    const victim = theOne('worker', 1)(cluster);
    process.kill(victim.pid, 'SIGKILL');
    await cluster.replaced(victim);
    await shaken.well();
    expect(books.breaches).toEqual([]);
    // While the others stand still, only the new one can answer.
    const others = cluster.members('worker').filter(({ index }) => index !== victim.index);
    for (const { pid } of others) process.kill(pid, 'SIGSTOP');
    try {
      await shaken.answers();
    } finally {
      for (const { pid } of others) process.kill(pid, 'SIGCONT');
    }
    await shaken.well();
    expect(books.breaches).toEqual([]);
  }, 90_000);

  it('gives each request one answer while two schedulers believe that they own its partition', async () => {
    const { cluster, books } = shaken;
    for (const scheduler of cluster.members('scheduler')) {
      process.kill(scheduler.pid, 'SIGSTOP');
      await delay(AWAY_MS);
      process.kill(scheduler.pid, 'SIGCONT');
      await within('2000 more right answers', 30_000, books.answered(2000));
      await shaken.well();
      expect(books.breaches).toEqual([]);
    }
  }, 90_000);
});
