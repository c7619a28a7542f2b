/**
 * Random clusters under random joins, deaths and drains. The rules of every step are checked by the simulated cluster
 * (nothing twice, no last replica retired, memory never given away twice); here: that it comes to rest, and where.
 * Set SIM_SEED to repeat a run that failed.
 */
import { expect, test } from '@jest/globals';
import { seeded } from '../batching/testing/policies.js';
import { SimCluster } from './testing/cluster.js';
import { loadKey, type PlacementTarget } from './target.js';

const SEED = Number(process.env['SIM_SEED'] ?? 20261130);
const RUNS = 200;
const CHURN_STEPS = 40;
const REST_STEPS = 60;

function randomTargets(random: () => number): PlacementTarget[] {
  return Array.from({ length: 1 + Math.floor(random() * 8) }, (_, i) => ({
    model: `m${i}`,
    version: '1',
    generation: 1 + Math.floor(random() * 3),
    needs: { kind: random() < 0.2 ? ('gpu' as const) : ('cpu' as const), devices: [], memoryBytes: Math.floor(random() * 40) },
    replicas: random() < 0.5 ? Infinity : 1 + Math.floor(random() * 3),
    active: true,
    excluded: new Set<string>(),
  }));
}

function churn(cluster: SimCluster, random: () => number, step: number): void {
  const ids = [...cluster.workers.keys()];
  const some = ids[Math.floor(random() * ids.length)];
  const what = random();
  if (what < 0.15 && ids.length < 8) cluster.add(`w${step}`, Math.floor(20 + random() * 100), random() < 0.5);
  else if (what < 0.25 && some !== undefined) cluster.workers.delete(some);
  else if (what < 0.32) for (const worker of cluster.workers.values()) if (worker.id === some) worker.draining = true;
  if (random() < 0.1) {
    const [first, ...rest] = cluster.targets;
    // A reload: the old generation stays a target until the new one answers.
    if (first !== undefined && random() < 0.5) cluster.targets = [...rest, { ...first, generation: first.generation + 10 }];
    else cluster.targets = rest;
  }
}

/** Whether no worker could take a first replica, even if every spare replica went. */
function fitsNowhere(cluster: SimCluster, target: PlacementTarget): boolean {
  return [...cluster.workers.values()].every(({ draining, gpu, memoryBytes, loads }) => {
    if (draining || (target.needs.kind === 'gpu' && !gpu)) return true;
    let used = 0;
    for (const { load } of loads.values()) {
      const owner = cluster.targets.find((each) => loadKey(each) === loadKey(load));
      const spare = owner !== undefined && cluster.serving(owner).length > 1;
      if (load.kind === target.needs.kind && !spare) used += load.memoryBytes;
    }
    return used + target.needs.memoryBytes > memoryBytes;
  });
}

test(`comes to rest where every model is served that fits (seed ${SEED})`, () => {
  for (let run = 0; run < RUNS; run++) {
    const random = seeded(SEED + run);
    const cluster = new SimCluster(random);
    cluster.targets = randomTargets(random);
    for (let i = 0; i < 3; i++) cluster.add(`first${i}`, Math.floor(20 + random() * 100), random() < 0.5);
    try {
      for (let step = 0; step < CHURN_STEPS; step++) {
        churn(cluster, random, step);
        cluster.step();
      }
      cluster.actions = 0;
      for (let step = 0; step < REST_STEPS; step++) cluster.step();
      const { actions, unplaced } = cluster.plan();
      expect(actions).toEqual([]);
      // Each load of the end state needs a load and an activation, and each place at most one retirement.
      expect(cluster.actions).toBeLessThanOrEqual(3 * cluster.workers.size * (cluster.targets.length + 2));
      for (const target of cluster.targets) {
        const serving = cluster.serving(target);
        const given = unplaced.find((each) => each.model === target.model);
        expect(serving.length === 0).toBe(given !== undefined);
        expect(serving.length).toBeLessThanOrEqual(target.replicas);
        if (given !== undefined) expect(fitsNowhere(cluster, target)).toBe(true);
      }
    } catch (error) {
      throw new Error(`SIM_SEED=${SEED + run} repeats it`, { cause: error });
    }
  }
});
