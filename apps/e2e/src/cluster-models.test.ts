/**
 * Models of a cluster are managed through any gateway while clients ask, workers die and join, and files are uploaded: no
 * request fails, every gateway tells the same, and each answer is one that some loaded version gives.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { scaleModel, temporaryModelRepository, writeModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { startCluster, type ClusterProcess } from './support/cluster-process.js';
import { GrpcControl } from './support/grpc-control.js';
import { startFactorTraffic, type FactorTraffic } from './support/factor-traffic.js';
import { Scrape } from './support/scrape.js';
import { until } from './support/until.js';

const LIMIT_MS = 120_000;
const scale = (factor: number): Uint8Array => scaleModel({ dims: [2], factor });
const config = (more = ''): string => `max_batch_size: 8\ninstance_group { count: 1 kind: KIND_CPU }\ndynamic_batching { }\n${more}`;

let repository: TemporaryRepository;
let uploads: string;
let cluster: ClusterProcess;
const running = new Set<FactorTraffic>();
beforeEach(() => {
  repository = temporaryModelRepository([
    { name: 'm', config: config(), versions: { 1: scale(2) } },
    { name: 'other', config: config(), versions: { 1: scale(7) } },
  ]);
  uploads = mkdtempSync(join(tmpdir(), 'paceline-e2e-uploads-'));
});
afterEach(async () => {
  for (const traffic of running) void traffic.stop();
  running.clear();
  await cluster.stop('SIGKILL');
  repository.remove();
  rmSync(uploads, { recursive: true });
});

async function start(...flags: readonly string[]): Promise<void> {
  const counts = ['--gateways=2', '--schedulers=2', '--workers=2'];
  const models = [`--model-repository=${repository.root}`, '--model-control-mode=explicit', `--model-upload-directory=${uploads}`];
  cluster = await startCluster([...models, ...counts, ...flags]);
}

function traffic(model: string): FactorTraffic {
  const started = startFactorTraffic(cluster.http, model);
  running.add(started);
  return started;
}

async function post(gateway: number, path: string, body: unknown = {}): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://${cluster.http[gateway]}/v2/repository/${path}`, { method: 'POST', body: JSON.stringify(body) });
  return { status: answer.status, text: await answer.text() };
}

const load = (gateway: number, name: string, parameters?: Record<string, string>): Promise<{ status: number; text: string }> =>
  post(gateway, `models/${name}/load`, parameters === undefined ? {} : { parameters });

const OK = { status: 200, text: '' };

/** Of one gateway, which every other must agree with. */
async function index(): Promise<readonly { name: string; version?: string; state?: string; reason?: string }[]> {
  const [first, second] = await Promise.all([post(0, 'index'), post(1, 'index')]);
  expect(second).toEqual(first);
  return JSON.parse(first.text) as readonly { name: string; version?: string; state?: string }[];
}

async function end(...traffics: readonly FactorTraffic[]): Promise<void> {
  for (const each of traffics) await each.stop();
  expect(traffics.flatMap(({ failures }) => failures)).toEqual([]);
}

describe('model control through any gateway', () => {
  it(
    'loads, reloads, overrides, takes files and unloads without failing a request, over HTTP and gRPC',
    async () => {
      await start('--load-model=m', '--load-model=other');
      const [m, other] = [traffic('m'), traffic('other')];
      await m.until(2);
      writeModelRepository(repository.root, [{ name: 'm', config: config('version_policy { all { } }'), versions: { 2: scale(3) } }]);
      expect(await load(1, 'm')).toEqual(OK);
      expect((await index()).filter(({ name }) => name === 'm')).toEqual([
        { name: 'm', version: '1', state: 'READY' },
        { name: 'm', version: '2', state: 'READY' },
      ]);
      await m.until(3);
      expect(
        await load(0, 'm', { config: JSON.stringify({ max_batch_size: 2, instance_group: [{ count: 1, kind: 'KIND_CPU' }] }) }),
      ).toEqual(OK);
      for (const http of cluster.http) {
        expect(await (await fetch(`http://${http}/v2/models/m/config`)).json()).toMatchObject({ max_batch_size: 2 });
      }
      const file = { config: JSON.stringify({ backend: 'onnxruntime', max_batch_size: 8 }), 'file:9/model.onnx': base64(scale(11)) };
      expect(await load(1, 'm', file)).toEqual(OK);
      await m.until(11);
      expect(readdirSync(uploads)).toHaveLength(1);
      // Reloads in a row, and from both gateways at the same time.
      for (let round = 0; round < 3; round++) {
        const answers = await Promise.all([load(0, 'm'), load(1, 'm', file), load(0, 'other'), load(1, 'other')]);
        expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      }
      writeModelRepository(repository.root, [{ name: 'broken', config: 'max_batch_size: "no"', versions: { 1: scale(13) } }]);
      const failed = await load(0, 'broken');
      expect([failed.status, failed.text]).toEqual([400, expect.stringContaining('broken/config.pbtxt:1:17')]);
      expect(await load(1, 'broken')).toEqual(failed);
      const grpc = cluster.grpc.map((address) => new GrpcControl(address));
      writeModelRepository(repository.root, [{ name: 'late', config: config(), versions: { 1: scale(5) } }]);
      await grpc[0]!.load('late');
      expect(await grpc[1]!.index()).toEqual(await index());
      await traffic('late')
        .until(5)
        .then(() => end(...[...running].slice(2)));
      await grpc[1]!.unload('late');
      expect((await index()).find(({ name }) => name === 'late')).toMatchObject({ state: 'UNAVAILABLE', reason: 'unloaded' });
      for (const each of grpc) each.close();
      expect(await post(1, 'models/m/load', {})).toEqual(OK);
      await until('files of nobody are removed', 10_000, () => readdirSync(uploads).length === 0);
      await end(m, other);
      expect(other.factors).toEqual([7]);
    },
    LIMIT_MS,
  );

  it(
    'goes on while workers die and join, and every worker that is there serves what was loaded',
    async () => {
      await start('--load-model=m');
      const m = traffic('m');
      await m.until(2);
      for (let round = 0; round < 2; round++) {
        const victim = cluster.state.workers[round % 2]!;
        process.kill(victim.pid, 'SIGKILL');
        writeModelRepository(repository.root, [{ name: `late_${round}`, config: config(), versions: { 1: scale(5 + round) } }]);
        expect(await load(round, `late_${round}`)).toEqual(OK);
        await until('the worker is there again', 30_000, () => cluster.state.workers[round % 2]?.pid !== victim.pid);
      }
      // Everything on both: with the other one gone at once, each model still answers.
      const names = ['m', 'late_0', 'late_1'];
      await until('both workers have every model', 60_000, async () => {
        const scrapes = await Promise.all(
          cluster.state.workers.map(({ metrics }) => Scrape.of(`127.0.0.1:${metrics}`).catch(() => undefined)),
        );
        return scrapes.every((scrape) =>
          names.every((model) => scrape !== undefined && scrape.sum('paceline_instance_memory_bytes', { model }) > 0),
        );
      });
      const late = [traffic('late_0'), traffic('late_1')];
      await Promise.all([late[0]!.until(5), late[1]!.until(6)]);
      process.kill(cluster.state.workers[0]!.pid, 'SIGKILL');
      await Promise.all([m, ...late].map((each) => each.more(20)));
      await end(m, ...late);
    },
    LIMIT_MS,
  );
});

describe('many models', () => {
  it(
    '200 of them are loaded, asked and unloaded',
    async () => {
      const names = Array.from({ length: 200 }, (_, i) => `model_${i}`);
      writeModelRepository(
        repository.root,
        names.map((name, i) => ({ name, config: config(), versions: { 1: scale(i + 1) } })),
      );
      await start('--load-model=*');
      expect((await index()).filter(({ state }) => state === 'READY')).toHaveLength(202);
      const body = JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 2], data: [1, 2] }] });
      for (const [i, name] of names.entries()) {
        const answer = await fetch(`http://${cluster.http[i % 2]}/v2/models/${name}/infer`, { method: 'POST', body });
        expect([name, await answer.json()]).toEqual([
          name,
          expect.objectContaining({ outputs: [expect.objectContaining({ data: [i + 1, 2 * i + 2] })] }),
        ]);
      }
      expect(await post(1, 'models/model_7/unload')).toEqual(OK);
      expect((await index()).filter(({ state }) => state === 'READY')).toHaveLength(201);
    },
    LIMIT_MS,
  );
});

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
