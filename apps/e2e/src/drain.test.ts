/**
 * SIGTERM under load at full speed, over and over: whatever reached the server is answered. `DRAIN_ROUNDS` sets how often
 * (6 without it), `DRAIN_SEED` the moments.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { fetchLoop, grpcLoop, pipelineLoop, streamLoop, Tally } from './drain/traffic.js';
import { Draw } from './support/draw.js';
import { FIXTURE_MODELS } from './support/fixture-models.js';
import { KeepAliveConnection } from './support/keep-alive.js';
import { startServer } from './support/server-process.js';

const ROUNDS = Number(process.env.DRAIN_ROUNDS ?? 6);
const SEED = Number(process.env.DRAIN_SEED ?? 20_261_130);

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1));
const ask = (path: string): Buffer => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
const slow = (iterations: number): string =>
  JSON.stringify({
    inputs: [
      { name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: [1.5] },
      { name: 'ITERS', datatype: 'INT64', shape: [1, 1], data: [iterations] },
    ],
  });

describe('a server that is told to end', () => {
  let repository: TemporaryRepository;
  let flags: readonly string[];
  beforeAll(() => {
    repository = temporaryModelRepository(FIXTURE_MODELS);
    flags = [`--model-repository=${repository.root}`, '--model-control-mode=explicit', '--load-model=identity_int32'];
  });
  afterAll(() => repository.remove());

  it(`answers everything that reached it, ${ROUNDS} times (seed ${SEED})`, async () => {
    const draw = new Draw(SEED);
    for (let round = 0; round < ROUNDS; round++) {
      const server = await startServer([...flags, '--lame-duck-ms=200']);
      const tally = new Tally();
      const { http, grpc } = server;
      const clients = Promise.all([
        ...[1, 2, 3, 4].map((n) => fetchLoop(http, tally, n * 1e6)),
        ...[5, 6].map((n) => pipelineLoop(http, tally, n * 1e6, draw.int(2, 40))),
        ...[7, 8].map((n) => grpcLoop(grpc, tally, n * 1e6)),
        ...[9].map((n) => streamLoop(grpc, tally, n * 1e6, draw.int(1, 16))),
      ]);
      const target = 100 + draw.int(0, 400);
      while (tally.answered < target && tally.lost.length === 0) await new Promise((resolve) => setImmediate(resolve));
      const exit = server.stop('SIGTERM');
      await clients;
      expect({ round, lost: tally.lost, exit: await exit }).toEqual({ round, lost: [], exit: 0 });
      expect(tally.refused).toBeGreaterThan(0);
    }
  }, 120_000);

  it('serves on for the drain delay, not ready, and keeps idle connections through the lame duck', async () => {
    const server = await startServer([...flags, '--drain-delay-ms=1500', '--lame-duck-ms=1500']);
    const connection = new KeepAliveConnection(portOf(server.http));
    const status = async (path: string): Promise<number> => (await connection.request(ask(path))).status;
    expect(await status('/v2/health/ready')).toBe(200);
    const exit = server.stop('SIGTERM');
    while ((await status('/v2/health/ready')) === 200);
    const tally = new Tally();
    await fetchLoop(server.http, tally, 1);
    expect(tally.answered).toBeGreaterThan(0);
    expect([tally.lost, tally.refused]).toEqual([[], 1]);
    // Refusing by now: an idle connection is still there, and is told to end with its answer.
    const last = await connection.request(ask('/v2/health/live'));
    expect([last.status, last.headers.get('connection')]).toEqual([200, 'close']);
    expect(await exit).toBe(0);
  }, 60_000);

  it('gives up at the limit, says how many requests that cost, and exits with 1', async () => {
    const server = await startServer([...flags.slice(0, 2), '--load-model=slow', '--exit-timeout-secs=1']);
    const answers = Array.from({ length: 3 }, () =>
      fetch(`http://${server.http}/v2/models/slow/infer`, { method: 'POST', body: slow(2_000_000) }).then(
        (response) => response.status,
        () => 'lost',
      ),
    );
    const waiting = async (): Promise<number> =>
      Number(
        /paceline_in_flight_requests\{[^}]*model="slow"[^}]*\} (\d+)/.exec(
          await (await fetch(`http://${server.metrics}/metrics`)).text(),
        )?.[1] ?? 0,
      );
    while ((await waiting()) < 3);
    expect(await server.stop('SIGTERM')).toBe(1);
    expect(await Promise.all(answers)).toEqual(['lost', 'lost', 'lost']);
    const verdict = server.log.find((line) => line.includes('drain limit reached'));
    expect(JSON.parse(verdict ?? '{}')).toMatchObject({ level: 'error', dropped: 3 });
  }, 60_000);
});
