/**
 * Hosts of instances are killed and frozen and the server is drained, all under load, while an independent checker compares
 * every answer: no request lost, doubled or wrong, no error before the server was told to end. `CHAOS_ROUNDS` repeats the
 * faults (1 without it), `CHAOS_SEED` draws which host they hit.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { slowModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { ChaosLoad } from './chaos/load.js';
import { Draw } from './support/draw.js';
import { instanceHosts, isAlive } from './support/process-tree.js';
import { startServer, type ServerProcess } from './support/server-process.js';
import { until, within } from './support/until.js';

const SEED = Number(process.env.CHAOS_SEED ?? 20_261_130);
const ROUNDS = Number(process.env.CHAOS_ROUNDS ?? 1);
const MODEL = 'shaken';
/** More clients than two instances hold with a batch running and one staged each, so that some are always free to go on. */
const CLIENTS = { http: 14, grpc: 6 };
const CONFIG = `backend: "onnxruntime"
max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "ITERS" data_type: TYPE_INT64 dims: [ 1 ] } ]
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
instance_group { count: 2 kind: KIND_CPU }
dynamic_batching { }`;
const CAPACITY_BACK_WITHIN_MS = 3000;
/** A frozen host is noticed by its learned limit or its missing start; both end in seconds. */
const FROZEN_GONE_WITHIN_MS = 15_000;
/** A host that falls sooner after its start than this is started again later than the one before it. */
const SETTLED_AFTER_MS = 6000;

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1));

describe(`a server that is shaken under load (seed ${SEED})`, () => {
  const draw = new Draw(SEED, 1);
  let repository: TemporaryRepository;
  let server: ServerProcess;
  let load: ChaosLoad;

  const hosts = (): number[] => instanceHosts(server.child.pid!);
  const twoHosts = (): Promise<void> => until('two instance hosts', 10_000, () => hosts().length === 2);
  const firstSeenMs = new Map<number, number>();
  const settledHosts = (): Promise<void> =>
    until('two hosts that have served for a while', 30_000, () => {
      const nowMs = performance.now();
      for (const pid of hosts()) if (!firstSeenMs.has(pid)) firstSeenMs.set(pid, nowMs);
      return hosts().length === 2 && hosts().every((pid) => nowMs - firstSeenMs.get(pid)! > SETTLED_AFTER_MS);
    });
  const rightAnswers = (count: number, limitMs = 20_000): Promise<void> =>
    within(`${count} more right answers`, limitMs, load.answered(count));
  /** @returns one of the two hosts and the other, as the seed wants it */
  const pickHosts = (): { readonly victim: number; readonly other: number } => {
    const [a, b] = hosts() as [number, number];
    return draw.chance(0.5) ? { victim: a, other: b } : { victim: b, other: a };
  };

  beforeAll(async () => {
    repository = temporaryModelRepository([{ name: MODEL, config: CONFIG, versions: { '1': slowModel() } }]);
    server = await startServer([`--model-repository=${repository.root}`]);
    load = new ChaosLoad({ httpPort: portOf(server.http), grpcPort: portOf(server.grpc), model: MODEL }, SEED, CLIENTS);
    load.start();
    // Past the runs after which the watchdog has learned how long one takes.
    await rightAnswers(400);
  }, 60_000);
  afterAll(async () => {
    await load.pause();
    load.close();
    await server.stop('SIGKILL');
    repository.remove();
  });

  for (let round = 1; round <= ROUNDS; round++) {
    it(`loses nothing when a host is killed, and both serve again within 3 s (round ${round})`, async () => {
      await settledHosts();
      const { victim, other } = pickHosts();
      process.kill(victim, 'SIGKILL');
      const killedAtMs = performance.now();
      await until('a new host', CAPACITY_BACK_WITHIN_MS, () => hosts().length === 2 && !hosts().includes(victim));
      // While the survivor stands still, only the new host can answer.
      process.kill(other, 'SIGSTOP');
      try {
        await rightAnswers(40, CAPACITY_BACK_WITHIN_MS);
      } finally {
        process.kill(other, 'SIGCONT');
      }
      expect(performance.now() - killedAtMs).toBeLessThan(CAPACITY_BACK_WITHIN_MS);
      await rightAnswers(100);
      expect(load.books.breaches).toEqual([]);
    }, 60_000);

    it(`loses nothing when both hosts are killed at once (round ${round})`, async () => {
      await twoHosts();
      const before = hosts();
      for (const pid of before) process.kill(pid, 'SIGKILL');
      await rightAnswers(100);
      await twoHosts();
      expect(hosts().filter((pid) => before.includes(pid))).toEqual([]);
      expect(load.books.breaches).toEqual([]);
    }, 60_000);

    it(`replaces a frozen host and loses nothing (round ${round})`, async () => {
      await twoHosts();
      await rightAnswers(400); // new instances learn anew how long a run takes
      const { victim } = pickHosts();
      process.kill(victim, 'SIGSTOP');
      await until('the frozen host is killed', FROZEN_GONE_WITHIN_MS, () => !isAlive(victim));
      await twoHosts();
      await rightAnswers(100);
      expect(load.books.breaches).toEqual([]);
    }, 60_000);
  }

  it('has counted exactly the answers that its clients got', async () => {
    await load.pause();
    const metrics = await (await fetch(`http://${server.metrics}/metrics`)).text();
    const sum = (family: string): number =>
      [...metrics.matchAll(new RegExp(`^${family}\\{.*model="${MODEL}".*\\} (\\d+)`, 'gm'))].reduce(
        (total, match) => total + Number(match[1]),
        0,
      );
    expect(sum('nv_inference_request_success')).toBe(load.books.right);
    expect(sum('nv_inference_request_failure')).toBe(0);
    expect(sum('nv_inference_pending_request_count')).toBe(0);
    load.start();
    await rightAnswers(100);
  }, 60_000);

  it('answers all it was given when it is told to end, and ends', async () => {
    const slow = Promise.all(Array.from({ length: 12 }, () => load.single(1500)));
    const started = load.books.right;
    await rightAnswers(20);
    load.serverMayEnd();
    const code = await within('the server ends', 40_000, server.stop('SIGTERM'));
    await slow;
    await load.pause();
    expect(load.books.breaches).toEqual([]);
    expect(load.books.right).toBeGreaterThanOrEqual(started + 12);
    expect(code).toBe(0);
    expect(server.log.filter((line) => line.includes('dropped'))).toEqual([]);
  }, 60_000);
});
