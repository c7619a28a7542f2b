// Hosts that leak, hang, run out of shared memory or die of what they read: the real host with bent system calls.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { identityModel, slowModel, writeFaultyHost, type HostFaults } from '@paceline/testkit';
import { defaultHostEntry } from './hosts/host-process.js';
import type { LocalWorkerOptions } from './local-worker.options.js';
import type { InstanceRestart } from './supervision/observer.js';
import { isRunning, until } from './testing/processes.js';
import { fp32, int64, readFp32 } from './testing/samples.js';
import { WorkerFixture, type ModelOptions } from './testing/worker-fixture.js';

// Processes are started and killed; a busy machine may take its time.
jest.setTimeout(60_000);

const IDENTITY: ModelOptions = {
  onnx: identityModel({ datatype: 'FP32', dims: [-1] }),
  inputs: [['INPUT0', 'FP32', [-1, -1]]],
  outputs: [['OUTPUT0', 'FP32', [-1, -1]]],
};
const SLOW: ModelOptions = {
  onnx: slowModel(),
  inputs: [
    ['INPUT0', 'FP32', [-1, 1]],
    ['ITERS', 'INT64', [-1, 1]],
  ],
  outputs: [['OUTPUT0', 'FP32', [-1, 1]]],
};
/** A request that the bent host knows by its bytes, which are four letters. */
const marked = (letters: string) => [fp32('INPUT0', [1, 1], new Float32Array(Uint8Array.from(Buffer.from(letters, 'latin1')).buffer))];
const one = (value: number) => [fp32('INPUT0', [1, 1], [value])];

let fixture: WorkerFixture;
let folder: string;
let restarts: InstanceRestart[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'paceline-faults-'));
  restarts = [];
});
afterEach(async () => {
  await fixture.close();
  rmSync(folder, { recursive: true });
});

function start(faults: HostFaults, options: Partial<LocalWorkerOptions> = {}): void {
  const hostEntry = writeFaultyHost(folder, defaultHostEntry(), faults);
  fixture = new WorkerFixture({ hostEntry, observer: { onInstanceRestart: (restart) => restarts.push(restart) }, ...options });
}

test('a host that grows beyond what it needs is replaced before it goes; no batch is lost', async () => {
  const limits = { memoryCheckMs: 50, memorySettleMs: 200, memoryGrowthBytes: 8 * 1024 * 1024 };
  start({ leak: { marker: 'leak', bytes: 32 * 1024 * 1024 } }, limits);
  const spec = await fixture.load('identity', IDENTITY);
  const [first] = fixture.worker.hostPids();
  await until('its memory is known', () => [...fixture.worker.instanceMemory()].length === 1);
  const [before] = fixture.worker.instanceMemory();
  expect(before).toMatchObject({ model: 'identity', version: '1', instance: 'identity_0_0' });
  let runs = 0;
  for (; restarts.length === 0; runs++) {
    await fixture.infer(spec, runs < 40 ? marked('leak') : one(runs), ['OUTPUT0']);
    expect(runs).toBeLessThan(1_000_000);
  }
  expect(restarts).toEqual([{ model: 'identity', version: '1', instance: 'identity_0_0', reason: 'memory' }]);
  await until('the old host has gone', () => !isRunning(first!));
  expect(fixture.listener.events).toEqual([]);
  expect(fixture.listener.completions.filter((c) => c.outcome !== 'ok')).toEqual([]);
  const [output] = await fixture.infer(spec, one(7), ['OUTPUT0']);
  expect(readFp32(output)[0]).toBe(7);
});

test('a model that hangs in load is refused by name within its limit; others are not touched', async () => {
  start({ hang: 'hanging/1/model.onnx' }, { loadLimitMs: 4000 });
  const good = await fixture.load('good', IDENTITY);
  const hanging = fixture.spec('hanging', IDENTITY);
  await expect(fixture.worker.load(hanging)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: "model 'hanging' could not be loaded: loading model 'hanging' took longer than its limit of 4000 ms, so its host was ended",
  });
  expect(fixture.worker.hostPids()).toHaveLength(1);
  await fixture.infer(good, one(1), ['OUTPUT0']);
  expect(fixture.listener.events).toEqual([]);
});

test('one that hangs in a shared host is ended soon, tried once more by itself, and its neighbours come back', async () => {
  start({ hang: 'hanging/1/model.onnx' }, { dedicatedHosts: 0, poolHosts: 1, pooledLoadLimitMs: 3000, loadLimitMs: 4000 });
  const good = await fixture.load('good', IDENTITY);
  await expect(fixture.worker.load(fixture.spec('hanging', IDENTITY))).rejects.toThrow(/took longer than its limit of 4000 ms/);
  await fixture.listener.event('ready');
  expect(restarts).toEqual([{ model: 'good', version: '1', instance: 'good_0_0', reason: 'hung' }]);
  await fixture.infer(good, one(1), ['OUTPUT0']);
});

test.each(['full', 'missing'])('shared memory is %s: tensors go by the socket and answers stay right', async (state) => {
  const shmDirectory = join(folder, 'shm');
  if (state === 'full') mkdirSync(shmDirectory);
  start({ sharedMemoryFull: true }, { shmDirectory });
  const spec = await fixture.load('identity', IDENTITY);
  const values = Float32Array.from({ length: 300_000 }, (_, i) => i % 1000);
  const [output] = await fixture.infer(spec, [fp32('INPUT0', [1, values.length], values)], ['OUTPUT0']);
  expect(output!.shape).toEqual([1, values.length]);
  expect(Buffer.from(readFp32(output).buffer).equals(Buffer.from(values.buffer))).toBe(true);
});

test('a request that kills its host while it is read is not called begun', async () => {
  start({ deadlyToRead: 'kill' });
  const spec = await fixture.load('identity', IDENTITY);
  expect(await fixture.run(spec, [fixture.member(marked('kill'), ['OUTPUT0'])])).toMatchObject({ outcome: 'lost', started: false });
  expect(restarts.map((r) => r.reason)).toEqual(['exited']);
});

test('a request that kills its host when it begins is called begun; in quarantine it harms nobody', async () => {
  start({ poison: 'kill' });
  const spec = await fixture.load('identity', IDENTITY);
  expect(await fixture.run(spec, [fixture.member(marked('kill'), ['OUTPUT0'])])).toMatchObject({ outcome: 'lost', started: true });
  await fixture.listener.event('ready');
  const events = fixture.listener.events.length;
  const apart = [marked('kill'), one(5)].map((inputs) => ({
    ...fixture.batch(spec, [fixture.member(inputs, ['OUTPUT0'])], 'apart'),
    quarantine: true,
  }));
  for (const batch of apart) fixture.worker.execute(batch);
  expect(await fixture.listener.completion(apart[0]!.id)).toMatchObject({ outcome: 'lost', started: true, instance: 'apart' });
  expect(await fixture.listener.completion(apart[1]!.id)).toMatchObject({ outcome: 'ok', instance: 'apart' });
  expect(readFp32(fixture.replies.only(apart[1]!.members[0]!.ref.number).outputs[0])[0]).toBe(5);
  expect(fixture.listener.events).toHaveLength(events);
  expect(restarts).toHaveLength(1);
});

test('a host that is frozen when a batch comes is replaced long before the limit of a run', async () => {
  start({}, { pingIntervalMs: 60_000, pingLimitMs: 300, executeLimitMs: 60_000 });
  const spec = await fixture.load('slow', SLOW);
  const slow = (iterations: bigint) => [fp32('INPUT0', [1, 1], [1]), int64('ITERS', [1, 1], [iterations])];
  await fixture.infer(spec, slow(1n), ['OUTPUT0']);
  const [pid] = fixture.worker.hostPids();
  process.kill(pid!, 'SIGSTOP');
  const lost = await fixture.run(spec, [fixture.member(slow(1n), ['OUTPUT0'])]);
  expect(lost).toMatchObject({ outcome: 'lost', started: false });
  expect(lost.error?.message).toContain("a run of model 'slow' had not begun after 300 ms");
  await fixture.listener.event('ready');
  expect(restarts.map((r) => r.reason)).toEqual(['unresponsive']);
  // Long runs that have begun are left alone.
  await fixture.infer(spec, slow(4000n), ['OUTPUT0']);
  expect(restarts).toHaveLength(1);
});
