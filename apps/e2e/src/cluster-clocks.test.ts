/**
 * Wall clocks of single processes that are wrong by minutes, and that jump while they work: no request fails, because
 * whatever has to end in time is measured by clocks that only go forward.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { Books } from './cluster/books.js';
import { ClusterLoad } from './cluster/cluster-load.js';
import { ClusterProcess } from './cluster/cluster-process.js';
import { QUESTIONED_MODELS } from './cluster/questions.js';
import { FAKETIME, ShiftedProcess } from './cluster/shifted-process.js';
import { Scrape } from './support/scrape.js';
import { until, within } from './support/until.js';

const SEED = 20_261_130;
const DEADLINE_MS = 20_000;
const AHEAD_S = 420;
const BEHIND_S = -540;
const MODELS = QUESTIONED_MODELS.map(({ name }) => name);
const ROLES = ['gateway', 'scheduler', 'worker'] as const;

const reason = FAKETIME === undefined ? ' (left out: faketime is not installed; Debian and Ubuntu: apt-get install faketime)' : '';

(FAKETIME === undefined ? describe.skip : describe)(`a cluster in which clocks disagree${reason}`, () => {
  let repository: TemporaryRepository;
  let cluster: ClusterProcess;
  let shifted: Record<(typeof ROLES)[number], ShiftedProcess>;
  let books: Books;
  let load: ClusterLoad;

  const answers = (): Promise<unknown> =>
    within(
      'every model answers by every gateway',
      10_000,
      Promise.all([0, 1].flatMap((gateway) => MODELS.map((model) => books.answered(20, gateway, model)))),
    );

  beforeAll(async () => {
    repository = temporaryModelRepository(QUESTIONED_MODELS);
    const env = { PACELINE_CLUSTER_SECRET: 'a secret of this test alone' };
    const flags = [`--model-repository=${repository.root}`, `--request-timeout-ms=${DEADLINE_MS}`];
    cluster = await ClusterProcess.start({ gateways: 1, schedulers: 1, workers: 1 }, flags, env);
    const all = [...flags, `--redis-url=redis://127.0.0.1:${cluster.redis.port}`];
    const [gateway, scheduler, worker] = await Promise.all([
      ShiftedProcess.ofCluster('gateway', all, AHEAD_S, env),
      ShiftedProcess.ofCluster('scheduler', all, BEHIND_S, env),
      ShiftedProcess.ofCluster('worker', all, AHEAD_S, env),
    ]);
    shifted = { gateway, scheduler, worker };
    await until('the shifted gateway is ready', 20_000, async () => {
      const response = await fetch(`http://127.0.0.1:${gateway.ports.http}/v2/health/ready`);
      return response.status === 200;
    });
    const scrape = (): Promise<Scrape> => Scrape.of(`127.0.0.1:${scheduler.ports.metrics}`);
    await until('the shifted scheduler has its share', 20_000, async () => (await scrape()).sum('paceline_partition_owned') === 8);
    books = new Books(DEADLINE_MS);
    load = new ClusterLoad(books, [cluster.members('gateway')[0]!, gateway.ports], SEED);
    load.start();
    await answers();
  }, 120_000);
  afterAll(async () => {
    await load?.close();
    await Promise.all(Object.values(shifted ?? {}).map((process) => process.end()));
    await cluster?.stop('SIGKILL');
    cluster?.remove();
    repository.remove();
  }, 60_000);

  it('serves with clocks that were wrong from the start', () => {
    expect(shifted.gateway.saidOffsetS).toBeGreaterThan(AHEAD_S - 120);
    expect(shifted.scheduler.saidOffsetS).toBeLessThan(BEHIND_S + 1);
    expect(books.breaches).toEqual([]);
  });

  it.each(ROLES)(
    'fails no request when the clock of a %s jumps',
    async (role) => {
      for (const offsetS of [BEHIND_S, AHEAD_S, 0]) {
        shifted[role].shift(offsetS);
        await answers();
        expect({ offsetS, breaches: books.breaches }).toEqual({ offsetS, breaches: [] });
      }
    },
    60_000,
  );
});
