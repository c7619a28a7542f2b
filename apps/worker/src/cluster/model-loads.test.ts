// The life of loads at a worker: private, announced, retired; and the ends of those whom nobody cares for any more.
import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError } from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import type { LoadReport, RemoteWorker } from '@paceline/worker-rpc';
import type { RemoteRecorder } from '@paceline/worker-rpc/testing';
import { ClusterRig, settled, specOf, WORKER } from '../testing/cluster-rig.js';

const A = '00000000000000a1';
const B = '00000000000000b2';
const spec = specOf('m', 3);
const load = ['m', '1', 3] as const;

describe('loads at a worker of a cluster', () => {
  let rig: ClusterRig;
  let remote: RemoteWorker;
  let told: RemoteRecorder;

  beforeEach(async () => {
    rig = new ClusterRig();
    ({ remote, told } = await rig.join(A));
  });

  const states = (recorder = told): string[] =>
    recorder.events.flatMap((event) => (event.kind === 'model' ? [event.model.state] : event.kind === 'gone' ? ['gone'] : []));

  test('from load to gone, as every scheduler sees it', async () => {
    const other = await rig.join(B);
    await remote.load({ ...spec, warmup: [] }, 'f');
    await remote.activate(...load);
    await remote.activate(...load);
    expect(other.told.of('model')[1]!.model).toEqual({
      spec,
      fingerprint: 'f',
      instances: ['m_0_0'],
      ready: ['m_0_0'],
      state: 'active',
      memoryBytes: 0,
    });
    const retired = remote.retire(...load);
    await settled();
    expect(rig.local.unloaded).toEqual([]);
    other.remote.release(...load);
    await retired;
    await settled();
    expect([states(), states(other.told)]).toEqual([
      ['loaded', 'active', 'retiring', 'gone'],
      ['loaded', 'active', 'retiring', 'gone'],
    ]);
    expect(rig.local.unloaded).toEqual(['m/1/3']);
  });

  test('instances are announced with their devices, passive ones not at all', async () => {
    const config = {
      ...spec.config,
      instanceGroup: create(ModelConfigSchema, { instanceGroup: [{ name: 'p', passive: true }] }).instanceGroup,
    };
    rig.local.onLoad = () =>
      Promise.resolve({ instances: ['g_0', 'p_0', 'g_1'], devices: ['gpu:0', 'gpu:0', 'gpu:1'], warnings: [], durationMs: 1 });
    await remote.load({ ...spec, config }, 'f');
    expect(told.of('model')[0]!.model).toMatchObject({ instances: ['g_0', 'g_1'], devices: ['gpu:0', 'gpu:1'], ready: ['g_0', 'g_1'] });
  });

  test('a lane that never says release is not waited for beyond the limit', async () => {
    await remote.load(spec, 'f');
    await remote.activate(...load);
    const retired = remote.retire(...load);
    await settled();
    rig.clock.advance(59_000_000);
    expect(rig.local.unloaded).toEqual([]);
    rig.clock.advance(1_000_000);
    await retired;
    expect(rig.local.unloaded).toEqual(['m/1/3']);
  });

  test('what was never active stops at once, even while it still loads', async () => {
    await remote.load(spec, 'f');
    await remote.retire(...load);
    expect(rig.local.unloaded).toEqual(['m/1/3']);
    const slow = Promise.withResolvers<LoadReport>();
    rig.local.onLoad = () => slow.promise;
    void remote.load(specOf('m', 4), 'f');
    const retired = remote.retire('m', '1', 4);
    await settled();
    slow.resolve({ instances: ['m_0_0'], warnings: [], durationMs: 1 });
    await retired;
    expect(rig.local.unloaded).toEqual(['m/1/3', 'm/1/4']);
    await expect(remote.activate('m', '1', 4)).rejects.toMatchObject({ code: 'NOT_FOUND', reason: 'unknown_load' });
    expect(states()).toEqual(['loaded', 'gone', 'gone']);
  });

  test('a load whose scheduler vanished waits for another to adopt it, then stops', async () => {
    await remote.load(spec, 'f');
    rig.network.cut(WORKER, A);
    await settled();
    rig.clock.advance(29_000_000);
    const other = await rig.join(B);
    expect(other.told.of('up')[0]!.hello.models.map((m) => m.state)).toEqual(['loaded']);
    await other.remote.load(spec, 'f');
    expect(rig.local.loaded).toHaveLength(1);
    rig.clock.advance(60_000_000);
    await settled();
    expect(rig.local.unloaded).toEqual([]);
    rig.network.cut(WORKER, B);
    await settled();
    rig.clock.advance(30_000_000);
    await settled();
    expect(rig.local.unloaded).toEqual(['m/1/3']);
  });

  test('what is active stays when its scheduler vanishes', async () => {
    await remote.load(spec, 'f');
    await remote.activate(...load);
    rig.network.cut(WORKER, A);
    await settled();
    rig.clock.advance(3_600_000_000);
    await settled();
    expect(rig.local.unloaded).toEqual([]);
  });

  test('the same generation with another fingerprint is refused', async () => {
    await remote.load(spec, 'f');
    await expect(remote.load(spec, 'g')).rejects.toMatchObject({ code: 'ALREADY_EXISTS', reason: 'load_exists' });
  });

  test('a load that fails leaves nothing and may be tried again', async () => {
    rig.local.onLoad = () => Promise.reject(new ServingError('INVALID_ARGUMENT', 'no model'));
    await expect(remote.load(spec, 'f')).rejects.toThrow('no model');
    await remote.retire(...load);
    rig.local.onLoad = () => Promise.resolve({ instances: ['m_0_0'], warnings: [], durationMs: 1 });
    await remote.load(spec, 'f');
    expect(states()).toEqual(['loaded']);
  });

  test('instances that fall and come back, and memory that grows, are told', async () => {
    const event = { model: 'm', version: '1', generation: 3, instance: 'm_0_0', reason: 'r' } as const;
    await remote.load(spec, 'f');
    rig.local.listener!.onInstance({ ...event, state: 'down' });
    const late = await rig.join(B);
    expect(late.told.of('up')[0]!.hello.models[0]!.ready).toEqual([]);
    rig.local.listener!.onInstance({ ...event, state: 'ready' });
    await settled();
    expect(told.of('instance').map((e) => e.event.state)).toEqual(['down', 'ready']);
    rig.local.memory.push({ model: 'm', version: '1', instance: 'm_0_0', residentBytes: 50e6 });
    rig.clock.advance(5_000_000);
    rig.local.memory[0] = { ...rig.local.memory[0]!, residentBytes: 51e6 };
    rig.clock.advance(5_000_000);
    await settled();
    expect(told.of('model').map((e) => [e.model.memoryBytes, e.model.ready.length])).toEqual([
      [0, 1],
      [50e6, 1],
    ]);
  });
});
