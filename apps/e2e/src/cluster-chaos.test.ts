/**
 * Processes of a cluster and its Redis are killed, stopped and restarted at random under load, while an independent checker
 * compares every answer: each request ends in one right answer or, while something it needs is broken, in one error that
 * says so; nothing is wrong, doubled or silent. `CHAOS_SECONDS` says how long (60 without it), `CHAOS_SEED` draws the faults.
 */
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { aftermath } from './cluster/aftermath.js';
import { drawFault, type Fault } from './cluster/faults.js';
import { MODELS, ShakenCluster } from './cluster/shaken-cluster.js';
import { Draw } from './support/draw.js';
import { until } from './support/until.js';

const SEED = Number(process.env.CHAOS_SEED ?? 20_261_130);
const SECONDS = Number(process.env.CHAOS_SECONDS ?? 60);
const DEADLINE_MS = 20_000;
/** Of the faults that do not wait for each other. */
const STORM_SECONDS = Math.ceil(SECONDS / 3);
const MOST_BETWEEN_MS = 1500;
const LOG_LINES = 60;
const SIZE = { gateways: 2, schedulers: 2, workers: 3 };

describe(`a cluster that is shaken under load for ${SECONDS} s (seed ${SEED})`, () => {
  const draw = new Draw(SEED);
  const sharedMemory = (): string[] => readdirSync('/dev/shm').filter((name) => name.startsWith('paceline-'));
  const before = new Set(sharedMemory());
  let shaken: ShakenCluster;

  /** All that helps to understand what happened, the last lines of the log included where there were breaches. */
  function tell(what: string, story: readonly string[]): string {
    const { books, cluster } = shaken;
    const log = books.breaches.length > 0 ? ['log:', ...cluster.log.slice(-LOG_LINES)] : [];
    return [what, ...story, `${books.right} right answers`, ...books.breaches, 'excused:', books.summary(), ...log].join('\n');
  }

  beforeAll(async () => {
    shaken = await ShakenCluster.start(SIZE, { seed: SEED, deadlineMs: DEADLINE_MS, copies: 3 });
  }, 90_000);
  afterAll(() => shaken?.end(), 60_000);

  it(
    'gives each request one answer, and serves again after each fault',
    async () => {
      const { cluster, books } = shaken;
      const endMs = performance.now() + 1000 * SECONDS;
      const story: string[] = [];
      try {
        while (performance.now() < endMs && books.breaches.length === 0) {
          await books.answered(draw.int(20, 400));
          const faults = draw.chance(0.25) ? [drawFault(draw), drawFault(draw)] : [drawFault(draw)];
          const struckMs = performance.now();
          story.push(`${new Date().toISOString()}: ${faults.map(({ name }) => name).join(' and ')}`);
          const excuses = await Promise.all(faults.map((fault) => fault.strike(cluster, books)));
          await shaken.well();
          for (const excuse of excuses) if (excuse) books.over(excuse);
          const gapMs = books.longestGapMs(struckMs).toFixed(0);
          story.push(`  ${((performance.now() - struckMs) / 1000).toFixed(1)} s until all was well, no answer for ${gapMs} ms at most`);
          cluster.processes();
        }
      } catch (cause) {
        throw new Error(tell(String(cause), story), { cause });
      }
      if (books.breaches.length > 0) throw new Error(tell('breaches', story));
      console.log(tell('no breach', story));
    },
    1000 * SECONDS + 90_000,
  );

  it(
    'gives each request one answer while faults follow each other before it has recovered',
    async () => {
      const { cluster, books } = shaken;
      const endMs = performance.now() + 1000 * STORM_SECONDS;
      const story: string[] = [];
      // With more than one thing broken there may be nobody left to serve.
      const storm = books.excuse('storm', ['refused']);
      const strikes: ReturnType<Fault['strike']>[] = [];
      try {
        while (performance.now() < endMs && books.breaches.length === 0) {
          await delay(draw.int(0, MOST_BETWEEN_MS));
          const fault = drawFault(draw);
          story.push(`${new Date().toISOString()}: ${fault.name}`);
          strikes.push(fault.strike(cluster, books));
        }
        const excuses = await Promise.all(strikes);
        await shaken.well();
        for (const excuse of [storm, ...excuses]) if (excuse) books.over(excuse);
      } catch (cause) {
        throw new Error(tell(String(cause), story), { cause });
      }
      if (books.breaches.length > 0) throw new Error(tell('breaches', story));
      console.log(tell('no breach', story));
    },
    1000 * STORM_SECONDS + 90_000,
  );

  it('leaves nothing behind', async () => {
    const { cluster, books, load } = shaken;
    await load.pause();
    expect(books.breaches).toEqual([]);
    expect(books.open).toBe(0);
    expect(await aftermath(cluster, MODELS)).toEqual([]);
    cluster.processes();
    expect(await cluster.stop('SIGTERM')).toBe(0);
    await until('no process is left', 5000, () => cluster.survivors().length === 0);
    expect(cluster.leftovers()).toEqual([]);
    expect(sharedMemory().filter((name) => !before.has(name))).toEqual([]);
  }, 90_000);
});
