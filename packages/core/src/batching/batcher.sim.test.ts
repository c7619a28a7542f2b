/**
 * Random loads against random policies under a virtual clock. The rules that hold at every step are checked inside
 * `simulate` (nothing lost or doubled, never above the maximum, no mixed shapes, timeouts exact, the queue delay kept while
 * an instance is free, the oldest of the highest level always served first); those over a whole run are checked here.
 * Set SIM_SEED to repeat a run that failed.
 */
import { describe, expect, test } from '@jest/globals';
import type { BatchPolicy, LevelPolicy } from './policy.js';
import { levelOf } from './policy.js';
import { PLAIN_QUEUE, policy, seeded } from './testing/policies.js';
import { simulate, type SimArrival, type SimLog } from './testing/simulate.js';

const SEED = Number(process.env['SIM_SEED'] ?? 20261130);
const RUNS = 150;

function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T;
}

function randomQueue(random: () => number): LevelPolicy {
  return {
    timeoutAction: random() < 0.25 ? 'DELAY' : 'REJECT',
    defaultTimeoutUs: pick(random, [0, 0, 500, 5000, 50_000]),
    allowTimeoutOverride: random() < 0.5,
    maxQueueSize: pick(random, [PLAIN_QUEUE.maxQueueSize, 3, 20]),
  };
}

function randomPolicy(random: () => number): BatchPolicy {
  const maxRows = pick(random, [1, 4, 8, 13, 64]);
  const levels = pick(random, [1, 1, 2, 5]);
  const objectiveUs = pick(random, [0, 0, 4000, 30_000]);
  return policy({
    objectiveUs,
    batching: random() < 0.9,
    maxRows,
    preferredRows: random() < 0.4 && objectiveUs === 0 ? [...new Set([Math.ceil(maxRows / 4), Math.ceil(maxRows / 2)])] : [],
    maxQueueDelayUs: objectiveUs === 0 ? pick(random, [0, 0, 100, 2000]) : 0,
    levels,
    defaultLevel: 1 + Math.floor(random() * levels),
    defaultQueue: randomQueue(random),
    queueByLevel: new Map(random() < 0.3 ? [[1, randomQueue(random)]] : []),
    queueTimeoutUs: pick(random, [60_000_000, 20_000]),
  });
}

function randomArrivals(random: () => number, maxRows: number): SimArrival[] {
  const shapes = pick(random, [[''], ['a', 'b'], Array.from({ length: 40 }, (_, i) => `s${i}`)]);
  const arrivals: SimArrival[] = [];
  let atUs = 0;
  const count = 100 + Math.floor(random() * 400);
  for (let i = 0; i < count; i++) {
    atUs += random() < 0.7 ? Math.floor(random() * 20) : Math.floor(random() * 1500);
    arrivals.push({
      atUs,
      rows: random() < 0.6 ? 1 : 1 + Math.floor(random() * maxRows),
      shape: pick(random, shapes),
      priority: Math.floor(random() * 7),
      timeoutUs: random() < 0.3 ? Math.floor(random() * 8000) : 0,
      ...(random() < 0.15 ? { cancelUs: atUs + Math.floor(random() * 3000) } : {}),
    });
  }
  return arrivals;
}

/** Within a level and a shape, requests start in the order they came; those a DELAY policy moved back are exempt. */
function expectFirstInFirstOut(p: BatchPolicy, arrivals: readonly SimArrival[], log: SimLog): void {
  const last = new Map<string, number>();
  for (const batch of log.batches) {
    for (const id of batch.members) {
      const a = arrivals[id] as SimArrival;
      const level = levelOf(p, a.priority ?? 0);
      if ((p.queueByLevel.get(level) ?? p.defaultQueue).timeoutAction === 'DELAY') continue;
      const key = `${level}/${a.shape}`;
      expect(id).toBeGreaterThan(last.get(key) ?? -1);
      last.set(key, id);
    }
  }
}

describe(`simulation, SIM_SEED=${SEED}`, () => {
  test.each(Array.from({ length: RUNS }, (_, run) => SEED + run))('seed %i', (seed) => {
    const random = seeded(seed);
    const p = randomPolicy(random);
    const arrivals = randomArrivals(random, p.maxRows);
    const fixedUs = random() * 3000;
    const perRowUs = random() * 200;
    const log = simulate({
      policy: p,
      instances: 1 + Math.floor(random() * 3),
      arrivals,
      executionUs: (rows) => Math.ceil(1 + (fixedUs + perRowUs * rows) * (0.9 + 0.2 * random())),
    });
    const outcomes = [
      ...log.batches.flatMap((b) => b.members),
      ...[...log.expired, ...log.late].map((e) => e.id),
      ...log.shed,
      ...log.cancelled,
    ];
    expect(outcomes.sort((a, b) => a - b)).toEqual(arrivals.map((_, i) => i));
    expect(log.completedUs.size).toBe(log.batches.reduce((n, b) => n + b.members.length, 0));
    expectFirstInFirstOut(p, arrivals, log);
  });
});
