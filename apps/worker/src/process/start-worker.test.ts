// Workers as real processes, under a scheduler and a gateway that this test plays: how they serve, drain and die.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { RedisMembership } from '@paceline/cluster-state';
import { randomId } from '@paceline/link';
import type { Member, ReplyFrame } from '@paceline/protocol';
import { connectRedis, RedisKeys, type RedisConnection } from '@paceline/redis';
import type { Tensor } from '@paceline/tensor';
import { slowModel, startRedis, type RedisServer } from '@paceline/testkit';
import { connectGrpcWorker, type BatchMember, type LoadSpec, type RemoteWorker } from '@paceline/worker-rpc';
import { RemoteRecorder } from '@paceline/worker-rpc/testing';
import { children, isRunning, until } from '../testing/processes.js';
import { fp32, int64, readFp32 } from '../testing/samples.js';
import { startWorkerProcess, type StartedWorker } from '../testing/worker-process.js';
import { WorkerFixture } from '../testing/worker-fixture.js';
import { GatewayStub } from '../testing/gateway-stub.js';

jest.setTimeout(60_000);

const clock = systemClock;
const SCHEDULER = randomId();
const EPOCH = { number: 1, owner: SCHEDULER };

let redis: RedisServer;
let connection: RedisConnection;
let files: WorkerFixture;
let spec: LoadSpec;

beforeAll(async () => {
  redis = await startRedis();
  connection = connectRedis({ mode: 'standalone', urls: [redis.url], name: 'test' });
  await connection.whenUp(5000);
  files = new WorkerFixture();
  spec = files.spec('slow', {
    onnx: slowModel(),
    inputs: [
      ['INPUT0', 'FP32', [-1, 1]],
      ['ITERS', 'INT64', [-1, 1]],
    ],
    outputs: [['OUTPUT0', 'FP32', [-1, 1]]],
  });
});

afterAll(async () => {
  connection.close();
  await redis.stop();
  await files.close();
});

describe('a worker process', () => {
  let worker: StartedWorker;
  let gateway: GatewayStub;
  let remote: RemoteWorker;
  let told: RemoteRecorder;
  let membership: RedisMembership;
  let self: Member;

  beforeEach(async () => {
    gateway = await GatewayStub.start();
    membership = new RedisMembership(connection, new RedisKeys('paceline'), clock);
    self = { role: 'gateway', id: gateway.id, address: gateway.address, draining: false };
    await membership.beat(self, 60_000);
    worker = await startWorkerProcess(redis.url, ['--heartbeat-ms=100']);
    told = new RemoteRecorder();
    const connectTo = connectGrpcWorker({
      identity: { secret: undefined, self: { role: 'scheduler', id: SCHEDULER, session: randomId() } },
      clock,
    });
    remote = connectTo(worker.id, worker.address, told);
    await told.next('up');
    await remote.load(spec, 'f');
    await remote.activate(spec.model, spec.version, spec.generation);
  });

  afterEach(async () => {
    worker.child.kill('SIGKILL');
    await worker.exited;
    await remote.close();
    await gateway.close();
    await membership.leave(self);
  });

  const member = (number: number, rounds: bigint, held = false): BatchMember => {
    const inputs: readonly Tensor[] = [fp32('INPUT0', [1, 1], [number]), int64('ITERS', [1, 1], [rounds])];
    const common = { ref: { gateway: gateway.id, number }, rows: 1, outputs: ['OUTPUT0'], queueNs: 5 };
    if (!held) return { ...common, inputs };
    gateway.held.set(number, inputs);
    return { ...common, inputs: inputs.map((t) => ({ ...t, data: new Uint8Array(0) })), heldBytes: 12 };
  };
  const execute = (id: number, ...members: BatchMember[]): void =>
    remote.execute({
      partition: 1,
      epoch: EPOCH,
      batch: { id, model: 'slow', version: '1', generation: 1, instance: 'slow_0_0', rows: members.length, members },
    });
  const hostsOf = (pid: number): number[] => children(pid);
  const value = (frame: ReplyFrame): number | undefined => (frame.ok ? readFp32(frame.outputs[0])[0] : undefined);

  test('answers gateways itself, with inputs in the batch and with inputs that it pulls', async () => {
    execute(1, member(1, 1n), member(2, 1n, true), { ...member(3, 1n, true), ref: { gateway: gateway.id, number: 99 } });
    expect(value(await gateway.frame(1))).toBe(1);
    expect(value(await gateway.frame(2))).toBe(2);
    expect(await told.completion(1)).toMatchObject({ outcome: 'ok', started: true });
    expect(gateway.frames.has(99)).toBe(false);
    const probe = await fetch(`http://${worker.metrics}/ready`);
    expect([probe.status, await probe.json()]).toEqual([200, { ready: true, waitsFor: [] }]);
    const metrics = await (await fetch(`http://${worker.metrics}/metrics`)).text();
    expect(metrics).toContain('process_resident_memory_bytes');
  });

  test('SIGTERM: says so, finishes what runs, sees the reply arrive, leaves, exits with 0', async () => {
    execute(1, member(1, 3000n));
    await told.next('started');
    worker.child.kill('SIGTERM');
    await told.next('draining');
    expect((await membership.beat(self, 60_000)).find(({ id }) => id === worker.id)).toMatchObject({ draining: true });
    expect(gateway.frames.size).toBe(0);
    const hosts = hostsOf(worker.pid);
    expect(hosts.length).toBeGreaterThan(0);
    expect(value(await gateway.frame(1))).toBe(1);
    expect(await told.completion(1)).toMatchObject({ outcome: 'ok' });
    expect(await worker.exited).toBe(0);
    expect((await membership.beat(self, 60_000)).map(({ role }) => role)).toEqual(['gateway']);
    await until('the hosts to end', () => !hosts.some(isRunning));
  });

  test('killed: the scheduler knows within half a second, and no host is left', async () => {
    execute(1, member(1, 1_000_000_000n));
    await told.next('started');
    const hosts = hostsOf(worker.pid);
    expect(hosts.length).toBeGreaterThan(0);
    worker.child.kill('SIGKILL');
    const killedAt = performance.now();
    await told.next('down');
    expect(performance.now() - killedAt).toBeLessThan(500);
    await until('the hosts to end', () => !hosts.some(isRunning));
  });

  test('frozen: the scheduler knows within three seconds, and finds it again afterwards with what it had', async () => {
    worker.child.kill('SIGSTOP');
    const stoppedAt = performance.now();
    await told.next('down');
    expect(performance.now() - stoppedAt).toBeLessThan(3500);
    const { length } = told.events;
    worker.child.kill('SIGCONT');
    const { hello } = await told.next('up', () => true, length);
    expect(hello.models.map((m) => [m.spec.model, m.state, m.ready])).toEqual([['slow', 'active', ['slow_0_0']]]);
    execute(2, member(2, 1n));
    expect(value(await gateway.frame(2))).toBe(2);
  });

  test('a batch that outlives its scheduler and loses its instance goes back to the gateway', async () => {
    execute(1, member(1, 1_000_000_000n), { ...member(2, 1n), attempt: 2 });
    await told.next('started');
    const [host] = hostsOf(worker.pid);
    await remote.close();
    await until('the worker to notice', () => worker.lines.some((line) => line.includes('connection of a scheduler ended')));
    process.kill(host!, 'SIGKILL');
    const lost = await Promise.all([gateway.lost(1), gateway.lost(2)]);
    expect(lost.map(({ attempt, started }) => [attempt, started])).toEqual([
      [1, true],
      [2, true],
    ]);
    expect(lost[0].error.reason).toBe('instance_lost');
  });
});

test('what is wrong with its settings is said, and it exits', async () => {
  const taken = `--link-port=${redis.port}`;
  const expected = [/secret/, /cannot listen for schedulers on 127.0.0.1:\d+: it is already in use .* --link-port/];
  const tried = await Promise.allSettled([['--link-host=0.0.0.0'], [taken]].map((flags) => startWorkerProcess(redis.url, flags)));
  for (const [i, why] of expected.entries())
    expect(tried[i]).toMatchObject({ status: 'rejected', reason: { message: expect.stringMatching(why) } });
});
