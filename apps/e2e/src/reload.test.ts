/**
 * Models change while clients ask: versions are added, configurations changed, models reloaded and broken, with constant
 * traffic over HTTP. No request may fail, and each answer must be one that some loaded version gives.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { identityModel, scaleModel, temporaryModelRepository, writeModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { startServer, type ServerProcess } from './support/server-process.js';

const scale = (factor: number): Uint8Array => scaleModel({ dims: [2], factor });
const config = (maxBatchSize: number, more = ''): string => `max_batch_size: ${maxBatchSize}\ndynamic_batching { }\n${more}`;
const BODY = JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 2], data: [1, 2] }] });

let repository: TemporaryRepository;
let server: ServerProcess;
const running = new Set<{ stop(): Promise<void> }>();
beforeEach(() => {
  repository = temporaryModelRepository([
    { name: 'm', config: config(8), versions: { 1: scale(2) } },
    { name: 'other', config: config(8), versions: { 1: scale(7) } },
  ]);
});
afterEach(async () => {
  for (const each of running) await each.stop();
  running.clear();
  await server.stop('SIGKILL');
  repository.remove();
});

interface Traffic {
  /** Factors that answers have shown, in the order in which each was first seen. */
  readonly factors: readonly number[];
  readonly failures: readonly string[];
  /** Resolves with the next answer that shows `factor`. */
  until(factor: number): Promise<void>;
  stop(): Promise<void>;
}

/** Sends requests for `model` in four loops, one after the other in each. */
function traffic(model: string): Traffic {
  const url = `http://${server.http}/v2/models/${model}/infer`;
  const factors: number[] = [];
  const failures: string[] = [];
  const waiting: { factor: number; resolve: () => void }[] = [];
  let stopped = false;
  const loop = async (): Promise<void> => {
    while (!stopped) {
      const answer = await fetch(url, { method: 'POST', body: BODY });
      const text = await answer.text();
      if (answer.status !== 200) {
        failures.push(`${answer.status} ${text}`);
        continue;
      }
      const [first = 0, second] = (JSON.parse(text) as { outputs: { data: number[] }[] }).outputs[0]!.data;
      if (second !== 2 * first) failures.push(`wrong answer ${text}`);
      if (!factors.includes(first)) factors.push(first);
      for (const one of waiting.splice(0)) {
        if (one.factor === first) one.resolve();
        else waiting.push(one);
      }
    }
  };
  const loops = Promise.all([loop(), loop(), loop(), loop()]).catch((error: unknown) => void failures.push(String(error)));
  const started = {
    factors,
    failures,
    until: (factor) => new Promise((resolve) => void waiting.push({ factor, resolve })),
    async stop() {
      stopped = true;
      await loops;
    },
  } satisfies Traffic;
  running.add(started);
  return started;
}

async function control(path: string, body: unknown = {}): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://${server.http}/v2/repository/${path}`, { method: 'POST', body: JSON.stringify(body) });
  return { status: answer.status, text: await answer.text() };
}

const load = (name: string, parameters?: Record<string, string>): Promise<{ status: number; text: string }> =>
  control(`models/${name}/load`, parameters === undefined ? {} : { parameters });

async function index(): Promise<{ name: string; version?: string; state?: string; reason?: string }[]> {
  return JSON.parse((await control('index')).text) as { name: string; version?: string; state?: string; reason?: string }[];
}

describe('mode explicit', () => {
  beforeEach(async () => {
    server = await startServer([
      `--model-repository=${repository.root}`,
      '--model-control-mode=explicit',
      '--load-model=m',
      '--load-model=other',
    ]);
  });

  it('adds a version, changes the configuration, overrides it, replaces files and fails a load without failing a request', async () => {
    const m = traffic('m');
    const other = traffic('other');
    await m.until(2);
    writeModelRepository(repository.root, [{ name: 'm', versions: { 2: scale(3) } }]);
    expect(await load('m')).toMatchObject({ status: 200 });
    await m.until(3);
    writeModelRepository(repository.root, [{ name: 'm', config: config(4, 'version_policy { all { } }'), versions: { 2: scale(5) } }]);
    expect(await load('m')).toMatchObject({ status: 200 });
    await m.until(5);
    expect((await index()).filter(({ name }) => name === 'm')).toEqual([
      { name: 'm', version: '1', state: 'READY' },
      { name: 'm', version: '2', state: 'READY' },
    ]);
    expect(
      await load('m', { config: JSON.stringify({ max_batch_size: 2, instance_group: [{ count: 1, kind: 'KIND_CPU' }] }) }),
    ).toMatchObject({ status: 200 });
    const files = {
      config: JSON.stringify({ backend: 'onnxruntime', max_batch_size: 8 }),
      'file:9/model.onnx': Buffer.from(scale(11)).toString('base64'),
    };
    expect(await load('m', files)).toMatchObject({ status: 200 });
    await m.until(11);
    writeModelRepository(repository.root, [{ name: 'm', config: 'max_batch_size: "no"', versions: { 10: scale(13) } }]);
    const failed = await load('m');
    expect(failed.status).toBe(400);
    expect(failed.text).toContain('m/config.pbtxt:1:17');
    expect(await load('m')).toEqual(failed);
    expect((await fetch(`http://${server.http}/v2/health/ready`)).status).toBe(200);
    for (let i = 0; i < 50; i++) await Promise.all([m.until(11), other.until(7)]);
    await Promise.all([m.stop(), other.stop()]);
    expect([m.failures, other.failures]).toEqual([[], []]);
    expect([m.factors, other.factors]).toEqual([[2, 3, 5, 11], [7]]);
  }, 60_000);

  it('tells the truth about broken models, with the same reason as the index, and forgets it when they are mended', async () => {
    writeModelRepository(repository.root, [{ name: 'broken', config: config(8), versions: { 1: Uint8Array.of(1, 2, 3) } }]);
    const first = await load('broken');
    expect(first.status).toBe(400);
    expect(await load('broken')).toEqual(first);
    const entry = (await index()).find(({ name }) => name === 'broken');
    expect(entry).toMatchObject({ version: '1', state: 'UNAVAILABLE' });
    expect((JSON.parse(first.text) as { error: string }).error).toContain(entry!.reason!);
    writeModelRepository(repository.root, [{ name: 'broken', versions: { 1: scale(2) } }]);
    expect(await load('broken')).toMatchObject({ status: 200 });
    expect((await index()).find(({ name }) => name === 'broken')).toEqual({ name: 'broken', version: '1', state: 'READY' });
    expect(await control('models/broken/unload')).toMatchObject({ status: 200 });
    expect((await index()).find(({ name }) => name === 'broken')).toEqual({
      name: 'broken',
      version: '1',
      state: 'UNAVAILABLE',
      reason: 'unloaded',
    });
    expect(await control('models/broken/unload')).toMatchObject({ status: 200 });
  }, 60_000);

  it('warms every instance up before a model is ready, and names what a wrong sample names', async () => {
    const warm = (name: string, value: string): string =>
      config(8, `model_warmup [ { name: "first" batch_size: 2 count: 5 inputs { key: "${name}" value: { ${value} } } } ]`);
    writeModelRepository(repository.root, [
      { name: 'w', config: warm('INPUT0', 'data_type: TYPE_FP32 dims: [ 2 ] random_data: true'), versions: { 1: scale(2) } },
      { name: 'x', config: warm('INPUT', 'data_type: TYPE_FP32 dims: [ 2 ] zero_data: true'), versions: { 1: scale(2) } },
      { name: 'y', config: warm('INPUT0', 'data_type: TYPE_STRING dims: [ 2 ] input_data_file: "a"'), versions: { 1: identityModel({ datatype: 'BYTES', dims: [2] }) }, files: { 'warmup/a': Buffer.from('0100000078010000007f'.slice(0, 18), 'hex') } },
    ]); // prettier-ignore
    expect(await load('w')).toMatchObject({ status: 200 });
    const ready = server.log.find((line) => line.includes('"model ready"') && line.includes('"w"'));
    expect(JSON.parse(ready!)).toMatchObject({ warmupSamples: 1, warmupMs: expect.any(Number) });
    const wrong = await load('x');
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain("warmup sample 'first' of model 'x': unexpected input 'INPUT' (the model's inputs are: INPUT0)");
    expect((await load('y')).text).toContain("'y/warmup/a': expected 2 elements");
  }, 60_000);
});

describe('mode poll', () => {
  it('follows the repository without failing a request, and one broken model freezes nothing', async () => {
    server = await startServer([`--model-repository=${repository.root}`, '--model-control-mode=poll', '--repository-poll-secs=1']);
    const m = traffic('m');
    await m.until(2);
    writeModelRepository(repository.root, [
      { name: 'm', versions: { 2: scale(3) } },
      { name: 'broken', config: 'max_batch_size: "no"', versions: { 1: scale(2) } },
    ]);
    await m.until(3);
    const state = async (name: string): Promise<string | undefined> => (await index()).find((entry) => entry.name === name)?.state;
    while ((await state('broken')) !== 'UNAVAILABLE');
    writeFileSync(join(repository.root, 'broken', 'config.pbtxt'), config(8));
    while ((await state('broken')) !== 'READY');
    rmSync(join(repository.root, 'other'), { recursive: true });
    while ((await state('other')) !== 'UNAVAILABLE');
    rmSync(join(repository.root, 'm', '2'), { recursive: true });
    const factors = m.factors.length;
    while ((await index()).some(({ name, version, state: s }) => name === 'm' && version === '2' && s === 'READY'));
    expect(m.factors).toHaveLength(factors);
    const refused = await load('m');
    expect(refused.status).toBe(503);
    await m.stop();
    expect(m.failures).toEqual([]);
  }, 60_000);
});
