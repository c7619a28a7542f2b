/**
 * Everything is restarted under load, one process after the other, as an upgrade does it. Clients that go to the other
 * gateway when one sends them away notice nothing: no request fails.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RoamingLoad } from './cluster/roaming-load.js';
import { ShakenCluster } from './cluster/shaken-cluster.js';

const SEED = 20_261_130;
const DEADLINE_MS = 20_000;
const CLIENTS = 12;

describe('a rolling restart of a whole cluster', () => {
  let shaken: ShakenCluster;
  beforeAll(async () => {
    shaken = await ShakenCluster.start({ gateways: 2, schedulers: 2, workers: 2 }, { seed: SEED, deadlineMs: DEADLINE_MS });
    // Its clients stay with their gateways; here they are to roam.
    await shaken.load.close();
  }, 90_000);
  afterAll(() => shaken?.end(), 60_000);

  it('fails no request', async () => {
    const { cluster, books } = shaken;
    const load = new RoamingLoad(cluster.members('gateway'), CLIENTS);
    load.start();
    for (const member of cluster.all) {
      const before = load.right;
      process.kill(member.pid, 'SIGTERM');
      await cluster.replaced(member);
      await cluster.serves(20_000);
      await load.answered(100);
      expect({ failed: load.failed, more: load.right > before }).toEqual({ failed: [], more: true });
    }
    await load.stop();
    expect(load.failed).toEqual([]);
    expect(load.unseen).toBeLessThanOrEqual(cluster.members('gateway').length);
    expect(load.longestMs).toBeLessThan(DEADLINE_MS);
    expect(books.breaches).toEqual([]);
  }, 180_000);
});
