// Model control by gateways: one result each, after the routing it led to; uploaded files; counters passed on.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError, type VersionCounters } from '@paceline/protocol';
import { gate } from '../testing/fakes.js';
import { ClusterFixture, settle, type FakeGateway, type reportOf } from './testing/cluster-fixture.js';

let on: ClusterFixture;
let gateway: FakeGateway;
beforeEach(() => {
  on = new ClusterFixture();
  gateway = on.addGateway('g');
});

describe('control', () => {
  beforeEach(async () => {
    on.source.set('m', { 1: 'x' });
    on.addWorker('a');
    on.addScheduler('s');
    await on.pass(2);
  });

  test('a result follows the routing, and comes once however often it is asked for', async () => {
    on.control('g', 1, 'load', 'm');
    on.control('g', 1, 'load', 'm');
    await settle();
    expect([gateway.models, gateway.results.get(1)]).toEqual([['m/1'], undefined]);
    gateway.results.clear();
    on.control('g', 1, 'load', 'm');
    await settle();
    expect(gateway.results.has(1)).toBe(true);
    expect(on.workers.get('a')?.loads).toHaveLength(1);
  });

  test('a failure follows the index that has its reason', async () => {
    on.control('g', 1, 'load', 'm');
    await settle();
    on.workers.get('a')!.onLoad = () => Promise.reject(new ServingError('INVALID_ARGUMENT', 'no graph', { reason: 'bad_model' }));
    on.source.set('bad', { 1: 'x' });
    on.control('g', 2, 'load', 'bad');
    await settle();
    // No time has passed since the routing before it.
    expect(gateway.results.get(2)).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(gateway.routing?.index.find(({ name }) => name === 'bad')?.reason).toContain('no graph');
  });

  test('an unload waits for the gateways: instances stop when all go by the new routing', async () => {
    on.control('g', 1, 'load', 'm');
    await settle();
    gateway.acknowledges = false;
    on.control('g', 2, 'unload', 'm');
    await on.pass(4);
    expect([gateway.models, on.loadsOn('a')]).toEqual([[], ['m/1 active']]);
    // A gateway that never answers does not keep it for ever.
    await on.pass(2);
    expect([on.loadsOn('a'), gateway.results.has(2)]).toEqual([[], true]);
  });

  test('a gateway that leaves is not waited for', async () => {
    on.control('g', 1, 'load', 'm');
    await settle();
    const other = on.addGateway('h');
    await settle();
    other.acknowledges = false;
    on.control('g', 2, 'unload', 'm');
    await settle();
    expect(on.loadsOn('a')).toEqual(['m/1 active']);
    on.gateways.delete('h');
    on.schedulers.get('s')?.owner.onGatewayDown('h');
    await settle();
    expect(on.loadsOn('a')).toEqual([]);
  });

  test('a load without any worker waits, says so, and fails after its limit', async () => {
    on.killWorker('a');
    await settle();
    on.control('g', 1, 'load', 'm');
    await on.pass(1);
    expect(gateway.progress).toEqual(['version 1 waits until a worker joins: no worker is connected that takes models']);
    await on.pass(60);
    expect(gateway.results.get(1)?.message).toContain('Unavailable: no worker is connected that takes models');
  });

  test('files of a request are refused by name where there is no folder for them', async () => {
    on.control('g', 1, 'load', 'up', { config: '{}', 'file:1/model.onnx': new Uint8Array(4) });
    await settle();
    expect(gateway.results.get(1)).toMatchObject({ code: 'FAILED_PRECONDITION', reason: 'no_upload_directory' });
    expect(gateway.results.get(1)?.message).toContain("'file:1/model.onnx'");
  });
});

describe('files of a load request', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'paceline-uploads-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  test('outlive the scheduler that took them, and go with the model', async () => {
    on.source.set('up', { 1: 'x' });
    const { read } = on.source;
    on.source.read = async (name, request) => {
      const model = await read.call(on.source, name, request);
      const { root } = request;
      return model && root !== undefined ? { ...model, release: () => Promise.resolve(rmSync(root, { recursive: true })) } : model;
    };
    on.addWorker('a');
    on.addScheduler('s1', { uploadDirectory: directory });
    await on.pass(2);
    on.addScheduler('s2', { uploadDirectory: directory });
    on.control('g', 1, 'load', 'up', { config: '{}', 'file:1/model.onnx': new Uint8Array(4) });
    // Files are written by the system, in its own time.
    await on.until(() => gateway.results.has(1));
    expect(gateway.results.get(1)).toBeUndefined();
    const [folder = ''] = readdirSync(directory);
    const root = join(directory, folder);
    expect(existsSync(join(root, 'up', '1', 'model.onnx'))).toBe(true);
    expect((await on.state.desired.read()).models).toEqual([{ model: 'up', wanted: true, config: '{}', root }]);
    on.killScheduler('s1');
    await on.pass(4);
    expect(on.schedulers.get('s2')?.owner.owns).toBe(true);
    expect([gateway.models, on.source.requests.at(-1)]).toEqual([['up/1'], { config: '{}', root }]);
    expect(on.workers.get('a')?.loads).toHaveLength(1);
    on.control('g', 2, 'unload', 'up');
    await settle();
    expect([on.loadsOn('a'), readdirSync(directory)]).toEqual([[], []]);
  });
});

test('what a gateway counts the others hear, one that joins later too', async () => {
  const time = { count: 1, ns: 5 };
  const none = { count: 0, ns: 0 };
  const counted = (count: number): VersionCounters => ({
    model: 'm',
    version: '1',
    success: { ...time, count },
    fail: none,
    queue: none,
    computeInput: none,
    computeInfer: none,
    computeOutput: none,
    inferenceCount: 0,
    executionCount: 0,
    lastInferenceMs: 0,
    batchSizes: [],
  });
  const other = on.addGateway('h');
  const owner = on.addScheduler('s');
  await on.pass(2);
  owner.onGatewayMessage('g', { kind: 'statistics', versions: [counted(1)] });
  owner.onGatewayMessage('g', { kind: 'statistics', versions: [counted(2)] });
  expect([gateway.counted, other.counted]).toEqual([[], ['g m/1 1', 'g m/1 2']]);
  expect(on.addGateway('late').counted).toEqual(['g m/1 2']);
});

test('a result of a term that has ended is never told: the gateway asks in the next one', async () => {
  on.source.set('m', { 1: 'x' });
  const held = gate<ReturnType<typeof reportOf>>();
  const a = on.addWorker('a');
  a.onLoad = () => held.promise;
  const owner = on.addScheduler('s');
  await on.pass(2);
  on.control('g', 1, 'load', 'm');
  await settle();
  const { term } = owner;
  const { renew } = on.state.leases;
  on.state.leases.renew = () => Promise.resolve(false);
  await on.pass(0.5);
  on.state.leases.renew = renew;
  expect([owner.term !== term, gateway.results.size]).toEqual([true, 0]);
  await on.pass(2);
  a.onLoad = undefined;
  held.fail(new ServingError('INTERNAL', 'late'));
  await settle();
  expect(gateway.results.size).toBe(0);
  on.control('g', 1, 'load', 'm');
  await settle();
  expect([gateway.results.has(1), gateway.results.get(1), gateway.models]).toEqual([true, undefined, ['m/1']]);
});
