// Schedulers as they run in a cluster, over a real Redis and real connections; the gateway and the worker are played.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { partitionOf } from '@paceline/core';
import { createLog, SILENT } from '@paceline/telemetry';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { FakeWorker } from '@paceline/worker-rpc/testing';
import { envelope } from '../batching/testing/fakes.js';
import { startScheduler, type SchedulerProcess } from './start-scheduler.js';
import { clusterOptions, GatewayDouble, PARTITIONS, until, WorkerDouble } from './testing/neighbours.js';

jest.setTimeout(40_000);

const CONFIG = `backend: "simulated" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
dynamic_batching { }
`;
const HOME = partitionOf('sim', '1', PARTITIONS);

describe('schedulers of a cluster', () => {
  let redis: RedisServer;
  let repository: string;
  let gateway: GatewayDouble;
  let worker: WorkerDouble<FakeWorker>;
  let schedulers: SchedulerProcess[];
  let next: number;
  /** How often each request was executed, by number. */
  let executed: Map<number, number>;

  const start = async (): Promise<SchedulerProcess> => {
    const scheduler = await startScheduler(clusterOptions(redis.url, repository), createLog(SILENT));
    schedulers.push(scheduler);
    return scheduler;
  };
  const owners = (): string[] => [...gateway.owners.values()].map(({ scheduler }) => scheduler);
  const send = (count: number): number[] =>
    Array.from({ length: count }, () => {
      const number = next++;
      gateway.queue.enqueue(envelope(number, { ref: { gateway: gateway.id, number }, model: 'sim' }));
      return number;
    });
  const allExecuted = (numbers: readonly number[]) => () => numbers.every((number) => executed.has(number));

  beforeEach(async () => {
    redis = await startRedis();
    repository = mkdtempSync(join(tmpdir(), 'paceline-'));
    mkdirSync(join(repository, 'sim', '1'), { recursive: true });
    writeFileSync(join(repository, 'sim', 'config.pbtxt'), CONFIG);
    schedulers = [];
    next = 1;
    executed = new Map();
    const options = clusterOptions(redis.url, repository);
    gateway = await GatewayDouble.start(options, () => HOME);
    worker = await WorkerDouble.start(options, (id) => new FakeWorker(id));
    worker.fake.onBatch = ({ batch }) => {
      for (const { ref } of batch.members) {
        executed.set(ref.number, (executed.get(ref.number) ?? 0) + 1);
        // As a worker does: the reply goes straight to the gateway.
        gateway.queue.forget(ref);
      }
      worker.fake.end();
    };
  });

  afterEach(async () => {
    for (const scheduler of schedulers) await scheduler.drain(0);
    await gateway.stop();
    await worker.stop();
    await redis.stop();
    rmSync(repository, { recursive: true });
  });

  test('one loads the models, owns every partition and executes each request once', async () => {
    const scheduler = await start();
    await until('the routing names the model', () => gateway.routed.includes('sim'));
    await until('every partition has an owner', () => gateway.owners.size === PARTITIONS);
    const numbers = send(500);
    await until('all are executed', allExecuted(numbers));
    expect([...executed.values()].every((times) => times === 1)).toBe(true);
    await until('gateways hear what was counted', () => gateway.told.includes('statistics'));
    const metrics = await (await fetch(`http://${scheduler.metricsAddress}/metrics`)).text();
    expect(metrics).toMatch(/^paceline_intake_requests_total 500$/m);
    expect(metrics.match(/^paceline_partition_owned\{partition="\d+"\} 1$/gm)).toHaveLength(PARTITIONS);
    expect(metrics).toMatch(/^nv_inference_count\{model="sim",version="1"\} 500$/m);
    expect(await (await fetch(`http://${scheduler.metricsAddress}/ready`)).json()).toEqual({ ready: true, waitsFor: [] });
  });

  test('two share the partitions; when one leaves the other serves what it had, and no request is lost', async () => {
    const [first, second] = [await start(), await start()];
    await until('the routing names the model', () => gateway.routed.includes('sim'));
    await until('both own two', () => owners().filter((id) => id === first.id).length === 2 && gateway.owners.size === PARTITIONS);
    const leaving = gateway.owners.get(HOME)?.scheduler === first.id ? first : second;
    const numbers: number[] = [];
    const sending = setInterval(() => numbers.push(...send(5)), 5);
    await until('some are executed', () => executed.size > 50);
    expect(await leaving.drain(5000)).toBe(0);
    schedulers = schedulers.filter((scheduler) => scheduler !== leaving);
    const before = executed.size;
    await until('the other executes', () => gateway.owners.get(HOME)?.scheduler !== leaving.id && executed.size > before + 50);
    clearInterval(sending);
    await until('all are executed', allExecuted(numbers));
    expect([...executed.values()].filter((times) => times > 1)).toEqual([]);
    expect(gateway.frames.size).toBe(0);
  });

  test('a request whose reply died with its worker is executed again by another', async () => {
    await start();
    await until('the routing names the model', () => gateway.routed.includes('sim'));
    const dying = worker;
    const answer = dying.fake.onBatch;
    dying.fake.onBatch = () => void dying.fake.end();
    const numbers = send(1);
    await until('the worker has said that it is done', () => dying.fake.batches.length === 1);
    worker = await WorkerDouble.start(clusterOptions(redis.url, repository), (id) => new FakeWorker(id));
    worker.fake.onBatch = answer;
    await dying.stop();
    await until('another has executed it', allExecuted(numbers));
    expect(gateway.frames.size).toBe(0);
  });

  test('a Redis that comes back without its data is served again, under higher epochs', async () => {
    await start();
    await until('the routing names the model', () => gateway.routed.includes('sim'));
    await until('all are executed', allExecuted(send(10)));
    const { epoch } = gateway.owners.get(HOME)!;
    await redis.restart({ keepData: false });
    const numbers = send(50);
    await until('it owns the partition again', () => gateway.owners.get(HOME)!.epoch.number > epoch.number);
    numbers.push(...send(50));
    await until('all are executed', allExecuted(numbers));
    expect([...executed.values()].filter((times) => times > 1)).toEqual([]);
    expect(gateway.frames.size).toBe(0);
  });
});
