// The gateway as a process of a cluster, over a real Redis and real links; scheduler and worker are played by the test.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Routing } from '@paceline/protocol';
import { createLog, SILENT } from '@paceline/telemetry';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { SchedulerDouble, clusterOptions, WorkerDouble } from '../testing/cluster-rig.js';
import { echo, fakeModel, okFrame } from '../testing/fake-lane.js';
import { until } from '../testing/until.js';
import { startGateway, type GatewayProcess } from './start-gateway.js';

const MODEL = fakeModel({ name: 'plain', inputs: [['IN', 'FP32', [-1, 2]]] });
const BODY = JSON.stringify({ inputs: [{ name: 'IN', datatype: 'FP32', shape: [1, 2], data: [1, 2] }] });

describe('a gateway process', () => {
  let redis: RedisServer;
  let gateway: GatewayProcess;
  let scheduler: SchedulerDouble | undefined;
  let worker: WorkerDouble | undefined;

  const routing = (self: SchedulerDouble, more: Partial<Routing> = {}): Routing => ({
    epoch: { number: 1, owner: self.id },
    generation: 1,
    models: [{ model: MODEL, generation: 1, partition: 2, healthy: true }],
    index: [{ name: 'plain', version: '1', state: 'READY' }],
    started: true,
    allReady: true,
    ...more,
  });
  const startScheduler = async (): Promise<SchedulerDouble> =>
    SchedulerDouble.start(clusterOptions(redis.url), (self) => [
      { kind: 'owns', partition: 2, epoch: { number: 1, owner: self.id } },
      { kind: 'routing', routing: routing(self) },
    ]);
  const http = (path: string, init?: RequestInit): Promise<Response> => fetch(`http://${gateway.addresses.http}${path}`, init);
  const infer = (): Promise<Response> => http('/v2/models/plain/infer', { method: 'POST', body: BODY });

  beforeEach(async () => {
    redis = await startRedis();
    gateway = await startGateway(clusterOptions(redis.url, '--model-control-mode=explicit'), createLog(SILENT));
  });
  afterEach(async () => {
    await scheduler?.stop();
    await worker?.stop();
    await gateway.drain(1000);
    await redis.stop();
    scheduler = undefined;
    worker = undefined;
  });

  test('is ready once there are models and who is there has connected, and a worker answers its clients', async () => {
    expect((await http('/v2/health/ready')).status).not.toBe(200);
    worker = await WorkerDouble.start(clusterOptions(redis.url));
    scheduler = await startScheduler();
    await until(() => gateway.ready);
    expect((await http('/v2/health/ready')).status).toBe(200);
    const reply = infer();
    const [envelope] = await scheduler.handedOver(2, 1);
    if (!envelope) throw new Error('nothing was handed over');
    expect(envelope.ref.gateway).toBe(gateway.id);
    expect(envelope.inputs.map(({ data }) => data.length)).toEqual([8]);
    expect((await worker.links.pull(envelope.ref)).map(({ data }) => data.length)).toEqual([8]);
    worker.links.send(envelope.ref, okFrame(echo(envelope)));
    const answered = await reply;
    expect(answered.status).toBe(200);
    expect(await answered.json()).toMatchObject({ model_name: 'plain', outputs: [{ name: 'OUTPUT0', data: [1, 2] }] });
    const metrics = await (await fetch(`http://${gateway.addresses.metrics}/metrics`)).text();
    expect(metrics).toContain('paceline_links{role="scheduler"} 1');
    expect(metrics).toContain('paceline_links{role="worker"} 1');
    expect(metrics).toContain('paceline_owned_partitions 1');
  });

  test('hands over again what is unanswered when the partition has a new owner', async () => {
    worker = await WorkerDouble.start(clusterOptions(redis.url));
    scheduler = await startScheduler();
    await until(() => gateway.ready);
    const replies = [infer(), infer()];
    const first = await scheduler.handedOver(2, 2);
    worker.links.send(first[0]!.ref, okFrame(echo(first[0]!)));
    const answered = await Promise.any(replies);
    await redis.restart({ keepData: false });
    scheduler.links.broadcast({ kind: 'owns', partition: 2, epoch: { number: 2, owner: scheduler.id } });
    const again = await scheduler.handedOver(2, 1);
    expect(again[0]?.ref).toEqual(first[1]?.ref);
    expect(again[0]?.attempt ?? 1).toBe(1);
    worker.links.send(first[1]!.ref, okFrame(echo(first[1]!)));
    const statuses = await Promise.all(replies.map(async (reply) => (await reply).status));
    expect([answered.status, ...statuses]).toEqual([200, 200, 200]);
  });

  test('serves through a scheduler that lives but has lost its link: requests and answers go other ways', async () => {
    worker = await WorkerDouble.start(clusterOptions(redis.url));
    scheduler = await startScheduler();
    await until(() => gateway.ready);
    await scheduler.links.close();
    const metrics = async (): Promise<string> => (await fetch(`http://${gateway.addresses.metrics}/metrics`)).text();
    let text = await metrics();
    for (let i = 0; i < 500 && !text.includes('paceline_owned_partitions 0'); i++) text = await metrics();
    expect(text).toContain('paceline_links{role="scheduler"} 0');
    expect(text).toContain('paceline_owned_partitions 0');
    const reply = infer();
    const [envelope] = await scheduler.handedOver(2, 1);
    worker.links.send(envelope!.ref, okFrame(echo(envelope!)));
    expect((await reply).status).toBe(200);
  });

  test('hands model control to the placement owner and shows its routing', async () => {
    scheduler = await startScheduler();
    await until(() => gateway.ready);
    const loaded = http('/v2/repository/models/other/load', { method: 'POST' });
    const told = scheduler.heard;
    await until(() => told.some(({ kind }) => kind === 'control'));
    expect(told.find(({ kind }) => kind === 'control')).toMatchObject({ operation: 'load', model: 'other' });
    expect(told.find(({ kind }) => kind === 'routed')).toMatchObject({ generation: 1 });
    scheduler.links.tell(gateway.id, { kind: 'control-result', id: 1, error: undefined });
    expect((await loaded).status).toBe(200);
    const index = await http('/v2/repository/index', { method: 'POST' });
    expect(await index.json()).toEqual([{ name: 'plain', version: '1', state: 'READY' }]);
  });

  test('shows statistics of the whole cluster', async () => {
    scheduler = await startScheduler();
    await until(() => gateway.ready);
    const time = (count: number): { count: number; ns: number } => ({ count, ns: 10 * count });
    scheduler.links.tell(gateway.id, {
      kind: 'statistics',
      process: scheduler.id,
      versions: [
        {
          model: 'plain',
          version: '1',
          success: time(0),
          fail: time(0),
          queue: time(6),
          computeInput: time(6),
          computeInfer: time(6),
          computeOutput: time(6),
          inferenceCount: 6,
          executionCount: 3,
          lastInferenceMs: 5,
          batchSizes: [{ batchSize: 2, computeInput: time(3), computeInfer: time(3), computeOutput: time(3) }],
          memoryBytes: 4096,
          batching: { sizes: [{ batchSize: 2, p50Us: 7, worstUs: 9, rowsPerSecond: 3 }], peakRows: undefined, objective: undefined },
        },
      ],
    });
    const read = async (): Promise<{ execution_count: number; batch_stats: unknown[] }> => {
      const { model_stats: stats } = (await (await http('/v2/models/plain/stats')).json()) as {
        model_stats: { execution_count: number; batch_stats: unknown[] }[];
      };
      return stats[0]!;
    };
    let seen = await read();
    for (let i = 0; i < 100 && seen.execution_count === 0; i++) seen = await read();
    expect(seen).toMatchObject({ execution_count: 3, inference_count: 6, inference_stats: { queue: { count: 6, ns: 60 } } });
    expect(seen.batch_stats).toHaveLength(1);
    expect(seen).toMatchObject({
      memory_usage: [{ type: 'CPU', byte_size: 4096 }],
      paceline: { profile: [{ batch_size: 2, p50_us: 7, worst_us: 9, rows_per_second: 3 }], peak: null },
    });
  });

  test('finishes what it accepted, then leaves the cluster', async () => {
    worker = await WorkerDouble.start(clusterOptions(redis.url));
    scheduler = await startScheduler();
    await until(() => gateway.ready);
    const reply = infer();
    const [envelope] = await scheduler.handedOver(2, 1);
    const drained = gateway.drain(5000);
    await until(() => worker?.beat.members.some(({ id, draining }) => id === gateway.id && draining) === true);
    worker.links.send(envelope!.ref, okFrame(echo(envelope!)));
    expect((await reply).status).toBe(200);
    expect(await drained).toBe(0);
    await until(() => worker?.beat.members.every(({ id }) => id !== gateway.id) === true);
    expect(worker.links.gateways).toEqual([]);
  });

  test('says which setting is wrong', async () => {
    const log = createLog(SILENT);
    const [, taken] = gateway.linkAddress.split(':');
    await expect(startGateway(clusterOptions(redis.url, `--link-port=${taken}`), log)).rejects.toThrow('--link-port');
    await expect(startGateway(clusterOptions(redis.url, '--cluster-secret-file=/none'), log)).rejects.toThrow(
      '--cluster-secret-file=/none cannot be read',
    );
    await expect(startGateway(clusterOptions(redis.url, '--cluster-prefix=a b'), log)).rejects.toThrow('--cluster-prefix');
  });
});
