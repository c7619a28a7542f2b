// Hosts that die, hang or are left alone: real processes, killed for real.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, jest, test } from '@jest/globals';
import { identityModel, scaleModel, slowModel } from '@paceline/testkit';
import type { LoadSpec } from '@paceline/worker-rpc';
import { children, isRunning, openDescriptors, until } from './testing/processes.js';
import { fp32, int64, readFp32 } from './testing/samples.js';
import { WorkerFixture, type ModelOptions } from './testing/worker-fixture.js';

// Processes are started and killed; a busy machine may take its time.
jest.setTimeout(60_000);

let fixture: WorkerFixture;
afterEach(() => fixture.close());

const SLOW: ModelOptions = {
  onnx: slowModel(),
  inputs: [
    ['INPUT0', 'FP32', [-1, 1]],
    ['ITERS', 'INT64', [-1, 1]],
  ],
  outputs: [['OUTPUT0', 'FP32', [-1, 1]]],
};
const IDENTITY: ModelOptions = {
  onnx: identityModel({ datatype: 'FP32', dims: [1] }),
  inputs: [['INPUT0', 'FP32', [-1, 1]]],
  outputs: [['OUTPUT0', 'FP32', [-1, 1]]],
};
const FOR_EVER = 1_000_000_000n;

const slow = (value: number, iterations: bigint) => [fp32('INPUT0', [1, 1], [value]), int64('ITERS', [1, 1], [iterations])];
const quick = () => [fp32('INPUT0', [1, 1], [1])];

/** Starts a run that does not end and one behind it. */
function occupy(spec: LoadSpec) {
  const running = fixture.batch(spec, [fixture.member(slow(1, FOR_EVER), ['OUTPUT0'])]);
  const staged = fixture.batch(spec, [fixture.member(slow(2, 1n), ['OUTPUT0'])]);
  fixture.worker.execute(running);
  fixture.worker.execute(staged);
  return { running, staged };
}

/** The host has begun to run: it burns processor time. */
async function busy(pid: number): Promise<void> {
  const ticks = () => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[11]);
  const before = ticks();
  await until('the host runs', () => ticks() > before + 5);
}

test.each([
  ['with shared memory', {}],
  ['without', { shmDirectory: '' }],
])('kill -9 during a batch: the running one was started, the staged one not, and the instance comes back (%s)', async (_, options) => {
  fixture = new WorkerFixture(options);
  const spec = await fixture.load('slow', SLOW);
  await fixture.infer(spec, slow(0, 1n), ['OUTPUT0']);
  const [pid] = fixture.worker.hostPids();
  const { running, staged } = occupy(spec);
  await busy(pid!);
  process.kill(pid!, 'SIGKILL');
  expect(await fixture.listener.completion(running.id)).toMatchObject({ outcome: 'lost', started: true, error: { code: 'UNAVAILABLE' } });
  expect(await fixture.listener.completion(staged.id)).toMatchObject({ outcome: 'lost', started: false });
  expect(await fixture.listener.event('down')).toMatchObject({
    instance: 'slow_0_0',
    generation: 1,
    reason: expect.stringContaining('SIGKILL'),
  });
  const refused = await fixture.run(spec, [fixture.member(slow(3, 1n), ['OUTPUT0'])]);
  expect(refused.outcome).toBe('refused');
  await fixture.listener.event('ready');
  expect(fixture.worker.hostPids()).not.toContain(pid);
  await fixture.infer(spec, slow(4, 1n), ['OUTPUT0']);
});

test('a run over its limit is ended, and the reason says so', async () => {
  fixture = new WorkerFixture({ executeLimitMs: 200, firstRunLimitMs: 10_000 });
  const spec = await fixture.load('slow', SLOW);
  await fixture.infer(spec, slow(0, 1n), ['OUTPUT0']);
  const { running, staged } = occupy(spec);
  const lost = await fixture.listener.completion(running.id);
  expect(lost).toMatchObject({ outcome: 'lost', started: true });
  expect(lost.error?.message).toContain("a run of model 'slow' took longer than its limit of 200 ms");
  expect(await fixture.listener.completion(staged.id)).toMatchObject({ outcome: 'lost', started: false });
  await fixture.listener.event('ready');
});

test('a run whose host a signal has stopped is ended at the limit, which stays as it was', async () => {
  fixture = new WorkerFixture({ executeLimitMs: 1000, firstRunLimitMs: 10_000 });
  const spec = await fixture.load('slow', SLOW);
  await fixture.infer(spec, slow(0, 1n), ['OUTPUT0']);
  const [pid] = fixture.worker.hostPids();
  const { running } = occupy(spec);
  await busy(pid!);
  process.kill(pid!, 'SIGSTOP');
  const lost = await fixture.listener.completion(running.id);
  expect(lost).toMatchObject({ outcome: 'lost', started: true, error: { code: 'UNAVAILABLE', reason: 'instance_lost' } });
  expect(lost.error?.message).toContain('limit of 1000 ms, so its host was ended: a signal had stopped it');
  await fixture.listener.event('ready');
});

test('a load over its limit rejects and leaves no process', async () => {
  fixture = new WorkerFixture({ loadLimitMs: 1 });
  const spec = fixture.spec('identity', IDENTITY);
  await expect(fixture.worker.load(spec)).rejects.toThrow(/loading model 'identity' took longer than its limit/);
  expect(fixture.worker.hostPids()).toEqual([]);
  expect(fixture.listener.events).toEqual([]);
});

test('an idle host that does not answer a ping is replaced', async () => {
  fixture = new WorkerFixture({ pingIntervalMs: 50, pingLimitMs: 200 });
  const spec = await fixture.load('identity', IDENTITY);
  const [pid] = fixture.worker.hostPids();
  process.kill(pid!, 'SIGSTOP');
  expect((await fixture.listener.event('down')).reason).toContain('ping took longer');
  await fixture.listener.event('ready');
  await fixture.infer(spec, quick(), ['OUTPUT0']);
});

test('a pooled model that takes its host down comes back in a host of its own; its neighbours come back too', async () => {
  fixture = new WorkerFixture({ dedicatedHosts: 0, poolHosts: 1 });
  const poison = await fixture.load('slow', SLOW);
  const neighbour = await fixture.load('identity', IDENTITY);
  const [pid] = fixture.worker.hostPids();
  expect(fixture.worker.hostPids()).toHaveLength(1);
  occupy(poison);
  await busy(pid!);
  process.kill(pid!, 'SIGKILL');
  await until('both are back', () => fixture.listener.events.filter((e) => e.state === 'ready').length === 2);
  expect(fixture.worker.hostPids()).toHaveLength(2);
  await fixture.infer(poison, slow(1, 1n), ['OUTPUT0']);
  await fixture.infer(neighbour, quick(), ['OUTPUT0']);
});

test('a pooled model with long runs moves to a host of its own without a pause in service', async () => {
  fixture = new WorkerFixture({ dedicatedHosts: 0, poolHosts: 1, slowRunMs: 5 });
  const spec = await fixture.load('slow', SLOW);
  await fixture.load('identity', IDENTITY);
  await fixture.infer(spec, slow(1, 200n), ['OUTPUT0']);
  while (fixture.worker.hostPids().length < 2) await fixture.infer(spec, slow(1, 1n), ['OUTPUT0']);
  await fixture.infer(spec, slow(1, 1n), ['OUTPUT0']);
  expect(fixture.listener.events).toEqual([]);
});

test('many small models share a few hosts, and each answers as itself', async () => {
  fixture = new WorkerFixture({ dedicatedHosts: 2, poolHosts: 2 });
  const factors = Array.from({ length: 12 }, (_, i) => i + 2);
  const load = (factor: number) => fixture.load(`scale_${factor}`, { ...IDENTITY, onnx: scaleModel({ dims: [1], factor }) });
  const specs = await Promise.all(factors.map(load));
  expect(fixture.worker.hostPids()).toHaveLength(4);
  const answers = await Promise.all(specs.map((spec) => fixture.infer(spec, [fp32('INPUT0', [1, 1], [10])], ['OUTPUT0'])));
  expect(answers.map(([output]) => readFp32(output)[0])).toEqual(factors.map((f) => 10 * f));
  for (const spec of specs) await fixture.worker.unload(spec.model, spec.version, spec.generation);
  expect(fixture.worker.hostPids()).toEqual([]);
});

test('tiny models do not share a host with models that take longer to load', async () => {
  fixture = new WorkerFixture({ dedicatedHosts: 0, poolHosts: 1, tinyModelBytes: 1000 });
  const tiny = ['tiny_1', 'tiny_2'];
  for (const name of tiny) await fixture.load(name, IDENTITY);
  expect(fixture.worker.hostPids()).toHaveLength(1);
  const small = await fixture.load('small_1', SLOW);
  await fixture.load('small_2', SLOW);
  expect(fixture.worker.hostPids()).toHaveLength(2);
  process.kill(fixture.worker.hostPids()[1]!, 'SIGKILL');
  await until('the small ones are back', () => fixture.listener.events.filter((e) => e.state === 'ready').length === 2);
  expect(fixture.listener.events.map((e) => e.model).filter((model) => tiny.includes(model))).toEqual([]);
  await fixture.infer(small, slow(1, 1n), ['OUTPUT0']);
});

test('50 load-infer-unload cycles leave no process and no descriptor', async () => {
  fixture = new WorkerFixture({ dedicatedHosts: 1, poolHosts: 1 });
  const kept = await fixture.load('kept', IDENTITY);
  const spec = fixture.spec('cycled', IDENTITY);
  const cycle = async (generation: number) => {
    const own = { ...spec, generation };
    await fixture.worker.load(own);
    await fixture.infer(own, quick(), ['OUTPUT0']);
    await fixture.worker.unload(own.model, own.version, generation);
  };
  for (let i = 1; i <= 5; i++) await cycle(i);
  const before = { descriptors: openDescriptors(), children: children().length };
  for (let i = 6; i <= 50; i++) await cycle(i);
  await until('what the last cycle held is closed', () => openDescriptors() <= before.descriptors && children().length <= before.children);
  expect(fixture.worker.hostPids()).toHaveLength(1);
  await fixture.infer(kept, quick(), ['OUTPUT0']);
});

test('close lets running batches finish, then leaves no process and no descriptor', async () => {
  const before = openDescriptors();
  fixture = new WorkerFixture();
  const spec = await fixture.load('slow', { ...SLOW, instances: 2 });
  const pids = fixture.worker.hostPids();
  expect(pids).toHaveLength(2);
  const batch = fixture.batch(spec, [fixture.member(slow(1, 1000n), ['OUTPUT0'])]);
  fixture.worker.execute(batch);
  await fixture.worker.close();
  expect((await fixture.listener.completion(batch.id)).outcome).toBe('ok');
  expect(pids.filter(isRunning)).toEqual([]);
  await until('descriptors are closed', () => openDescriptors() <= before);
});

test.each(['idle', 'running'])('no host outlives a worker that was killed while it was %s', async (state) => {
  fixture = new WorkerFixture();
  const spec = fixture.spec('slow', SLOW);
  const script = fileURLToPath(new URL('../dist/testing/orphan-parent.js', import.meta.url));
  const parent = spawn(process.execPath, [script, spec.modelPath, state], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface(parent.stdout), 'line')) as [string];
  const pids = JSON.parse(line) as number[];
  expect(pids.filter(isRunning)).toHaveLength(1);
  if (state === 'running') await busy(pids[0]!);
  parent.kill('SIGKILL');
  await until('the hosts have ended', () => !pids.some(isRunning));
});
