// Placement over whole clusters: owners in turn, workers that come and go, gateways that do not answer.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { partitionOf } from '@paceline/core';
import { ServingError } from '@paceline/protocol';
import { ModelInstanceGroup_Kind as Kind } from '@paceline/protocol/model-config';
import { gate } from '../testing/fakes.js';
import { ClusterFixture, reportOf, settle, type FakeGateway } from './testing/cluster-fixture.js';

let on: ClusterFixture;
let gateway: FakeGateway;
beforeEach(() => {
  on = new ClusterFixture();
  gateway = on.addGateway('g');
});

const generationsOn = (worker: string): number[] => [...(on.workers.get(worker)?.models.values() ?? [])].map(({ spec }) => spec.generation);

describe('a new cluster', () => {
  test('loads what the start-up names on every worker, and routes it', async () => {
    on.source.set('m', { 1: 'x' });
    on.addWorker('a');
    on.addWorker('b');
    on.addScheduler('s', { startupModels: ['m'] });
    await on.pass(2);
    expect([on.loadsOn('a'), on.loadsOn('b')]).toEqual([['m/1 active'], ['m/1 active']]);
    expect(gateway.models).toEqual(['m/1']);
    expect(gateway.routing).toMatchObject({ started: true, allReady: true, index: [{ name: 'm', version: '1', state: 'READY' }] });
  });

  test('without a worker tells gateways what is coming, and waits', async () => {
    on.source.set('m', { 1: 'x' });
    on.addScheduler('s', { startupModels: ['m'] });
    await on.pass(100);
    expect(gateway.routing).toMatchObject({
      started: false,
      allReady: false,
      models: [],
      index: [{ name: 'm', version: '1', state: 'LOADING' }],
    });
    on.addWorker('a');
    await on.pass(1);
    expect(gateway.models).toEqual(['m/1']);
    expect(gateway.routing?.started).toBe(true);
  });

  test('a model for which no worker has the memory comes up when one joins that has', async () => {
    on.source.set('big', { 1: 'x' });
    on.bytes.set('big', 1e9);
    on.addWorker('small', 1e8);
    on.addScheduler('s', { startupModels: ['big'] });
    await on.pass(8);
    expect(gateway.routing).toMatchObject({ started: true, allReady: false });
    expect(gateway.routing?.index).toEqual([
      {
        name: 'big',
        version: '1',
        state: 'UNAVAILABLE',
        reason: 'RESOURCE_EXHAUSTED: no worker has enough memory free (it needs about 2000 MB)',
      },
    ]);
    on.addWorker('large', 3e9);
    await on.pass(1);
    expect(on.loadsOn('large')).toEqual(['big/1 active']);
    expect(gateway.routing?.allReady).toBe(true);
  });
});

describe('owners in turn', () => {
  beforeEach(async () => {
    on.source.set('m', { 1: 'x' });
    on.source.set('extra', { 1: 'x' });
    on.addWorker('a');
    on.addWorker('b');
    on.addScheduler('s1', { startupModels: ['m'] });
    await on.pass(2);
    on.addScheduler('s2', { startupModels: ['m'] });
    await on.pass(1);
    on.control('g', 1, 'load', 'extra');
    await on.pass(1);
    expect(gateway.models).toEqual(['m/1', 'extra/1']);
  });

  test('one decides at a time', () => {
    expect([...on.schedulers.values()].map(({ owner }) => owner.owns)).toEqual([true, false]);
  });

  test('the next one adopts what is loaded, requests to load included, and touches nothing', async () => {
    const before = generationsOn('a');
    const epoch = gateway.routing?.epoch.number ?? 0;
    on.killScheduler('s1');
    await on.pass(4);
    expect(on.schedulers.get('s2')?.owner.owns).toBe(true);
    expect(gateway.routing?.epoch.number).toBeGreaterThan(epoch);
    expect(gateway.models.toSorted()).toEqual(['extra/1', 'm/1']);
    expect(generationsOn('a')).toEqual(before);
    expect(on.workers.get('a')?.loads).toHaveLength(2);
  });

  test('a model unloaded by request stays unloaded under the next owner', async () => {
    on.control('g', 2, 'unload', 'm');
    await on.pass(1);
    expect(gateway.results.has(2)).toBe(true);
    on.killScheduler('s1');
    await on.pass(4);
    expect(gateway.models).toEqual(['extra/1']);
    expect(on.loadsOn('a')).toEqual(['extra/1 active']);
  });

  test('after the store lost its data, another owner rebuilds what was asked for from the workers', async () => {
    on.killScheduler('s1');
    on.state.clear();
    await on.pass(5);
    expect(gateway.models.toSorted()).toEqual(['extra/1', 'm/1']);
    expect((await on.state.desired.read()).models).toEqual([{ model: 'extra', wanted: true, config: undefined }]);
    expect(on.workers.get('a')?.loads).toHaveLength(2);
  });

  test('an epoch that the store has forgotten is passed over: the gateways follow again', async () => {
    const epoch = gateway.routing?.epoch.number ?? 0;
    on.killScheduler('s1');
    on.killScheduler('s2');
    gateway.routing = { ...(gateway.routing as NonNullable<typeof gateway.routing>), epoch: { number: 7, owner: 's0' } };
    on.state.clear();
    on.addScheduler('s3', { startupModels: ['m'] });
    await on.pass(6);
    expect(epoch).toBeLessThan(7);
    expect(gateway.routing).toMatchObject({ epoch: { number: 8, owner: 's3' }, started: true });
    expect(gateway.models.toSorted()).toEqual(['extra/1', 'm/1']);
  });

  test('a reload that an owner left half done is finished: one generation of the version is left', async () => {
    on.source.set('m', { 1: 'y' });
    on.killScheduler('s1');
    await on.pass(4);
    expect(gateway.routing?.models.find(({ model }) => model.name === 'm')?.generation).toBe(3);
    expect(on.loadsOn('a')).toEqual(['extra/1 active', 'm/1 active']);
    expect(generationsOn('a').toSorted()).toEqual([2, 3]);
  });

  test('a graceful end hands over at once and leaves everything', async () => {
    await on.schedulers.get('s1')?.owner.stop();
    on.schedulers.delete('s1');
    await on.pass(1.5);
    expect(on.schedulers.get('s2')?.owner.owns).toBe(true);
    expect(gateway.routing?.epoch.owner).toBe('s2');
    expect(on.loadsOn('b')).toEqual(['extra/1 active', 'm/1 active']);
  });
});

describe('partitions', () => {
  const partitions = (): Map<string, number> => new Map(gateway.routing?.models.map(({ model, partition }) => [model.name, partition]));

  /** A model with an instance on each of these GPUs. */
  function setGpu(name: string, gpus: number[]): void {
    on.source.set(name, { 1: 'x' });
    const model = on.source.models.get(name);
    if (model instanceof ServingError || model === undefined) throw new Error('no model');
    for (const version of model.versions) {
      if (version.ok) for (const group of version.config.instanceGroup) Object.assign(group, { kind: Kind.GPU, count: 1, gpus });
    }
  }

  test('models on one GPU share one, under every owner; workers and routing say the same', async () => {
    for (const name of ['p', 'q', 'r']) setGpu(name, [0]);
    setGpu('other', [1]);
    on.source.set('cpu', { 1: 'x' });
    on.addWorker('a', 1e9, 2);
    const options = { startupModels: ['cpu', 'other', 'p', 'q', 'r'], partitions: 1024 };
    on.addScheduler('s1', options);
    await on.pass(2);
    const first = partitions();
    expect(first.get('q')).toBe(first.get('p'));
    expect(first.get('r')).toBe(first.get('p'));
    expect([first.get('cpu'), first.get('other')]).toEqual([partitionOf('cpu', '1', 1024), partitionOf('other', '1', 1024)]);
    const announced = [...(on.workers.get('a')?.models.values() ?? [])].map(({ spec }) => [spec.model, spec.partition] as const);
    expect(new Map(announced)).toEqual(first);
    on.addScheduler('s2', { ...options, startupModels: options.startupModels.toReversed() });
    on.killScheduler('s1');
    await on.pass(4);
    expect(gateway.routing?.epoch.owner).toBe('s2');
    expect(new Map([...partitions()].sort())).toEqual(new Map([...first].sort()));
    expect(on.workers.get('a')?.loads).toHaveLength(5);
  });
});

describe('workers', () => {
  test('one that joins gets every model, one that dies takes its replicas along', async () => {
    on.source.set('m', { 1: 'x' });
    on.addWorker('a');
    on.addScheduler('s', { startupModels: ['m'] });
    await on.pass(2);
    on.addWorker('b');
    await on.pass(1);
    expect(on.loadsOn('b')).toEqual(['m/1 active']);
    on.killWorker('a');
    await on.pass(1);
    expect(gateway.models).toEqual(['m/1']);
    on.killWorker('b');
    await on.pass(1);
    expect(gateway.models).toEqual(['m/1!']);
    expect(gateway.routing?.allReady).toBe(false);
    on.addWorker('c');
    await on.pass(1);
    expect([on.loadsOn('c'), gateway.models]).toEqual([['m/1 active'], ['m/1']]);
  });

  test('one that drains is spared once another serves', async () => {
    on.source.set('m', { 1: 'x' });
    on.addWorker('a');
    on.addScheduler('s', { startupModels: ['m'] });
    await on.pass(2);
    on.workers.get('a')?.drain();
    await on.pass(1);
    expect(on.loadsOn('a')).toEqual(['m/1 active']);
    on.addWorker('b');
    await on.pass(1);
    expect([on.loadsOn('a'), on.loadsOn('b')]).toEqual([[], ['m/1 active']]);
  });

  test('a death during a load leaves that worker out, while another is ready', async () => {
    on.source.set('m', { 1: 'x' });
    const held = gate<ReturnType<typeof reportOf>>();
    on.addWorker('a').onLoad = () => held.promise;
    on.addWorker('b');
    on.addScheduler('s');
    await on.pass(2);
    on.control('g', 1, 'load', 'm');
    await on.pass(1);
    expect(gateway.progress).toContain('version 1 is loading on 2 workers, 1 are ready');
    expect([gateway.models, gateway.results.size]).toEqual([[], 0]);
    on.killWorker('a');
    await settle();
    expect([gateway.results.has(1), gateway.results.get(1), gateway.models]).toEqual([true, undefined, ['m/1']]);
  });

  test('the fault of a model fails its load as on one worker, and leaves nothing', async () => {
    on.source.set('m', { 1: 'x' });
    on.addWorker('a').onLoad = () => Promise.reject(new ServingError('INVALID_ARGUMENT', 'no graph', { reason: 'bad_model' }));
    on.addWorker('b');
    on.addScheduler('s');
    await on.pass(2);
    on.control('g', 1, 'load', 'm');
    await on.pass(1);
    expect(gateway.results.get(1)?.message).toBe(
      "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: no graph;\n",
    );
    expect([on.loadsOn('a'), on.loadsOn('b'), gateway.models]).toEqual([[], [], []]);
  });

  test('a worker in trouble is left out and asked again later', async () => {
    on.source.set('m', { 1: 'x' });
    let troubled = true;
    const trouble = new ServingError('RESOURCE_EXHAUSTED', 'no space left', { reason: 'disk' });
    const a = on.addWorker('a');
    a.onLoad = (spec) => (troubled ? Promise.reject(trouble) : Promise.resolve(reportOf(spec)));
    on.addWorker('b');
    on.addScheduler('s', { startupModels: ['m'] });
    await on.pass(2);
    expect(gateway.models).toEqual(['m/1']);
    await on.pass(20);
    // 1 s, 2 s, 4 s, 8 s later, not at each beat.
    expect(a.loads.length).toBeLessThan(7);
    troubled = false;
    await on.pass(20);
    expect(on.loadsOn('a')).toEqual(['m/1 active']);
  });
});

test('a lease that cannot be renewed ends the term in time, and nothing more is asked of anybody', async () => {
  on.source.set('m', { 1: 'x' });
  on.addWorker('a');
  const owner = on.addScheduler('s', { startupModels: ['m'] });
  await on.pass(2);
  on.state.leases.renew = () => Promise.reject(new Error('the store is away'));
  on.state.leases.acquire = () => Promise.reject(new Error('the store is away'));
  await on.pass(1);
  expect(owner.owns).toBe(true);
  await on.pass(1);
  expect(owner.owns).toBe(false);
  on.addWorker('b');
  await on.pass(2);
  expect([on.loadsOn('b'), gateway.models]).toEqual([[], ['m/1']]);
});
