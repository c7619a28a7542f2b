// Unloading, operations side by side, stopping, and which version answers.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError } from '@paceline/protocol';
import { flush, gate, PlacementFixture } from './testing/fakes.js';

let on: PlacementFixture;
beforeEach(() => {
  on = new PlacementFixture();
});

describe('unload', () => {
  test('leaves the routing at once and resolves when the lane has drained', async () => {
    on.source.set('a', { 1: 'x' });
    const m = on.manager();
    await m.load('a', {});
    on.lanes.held.set('a/1', gate());
    let done = false;
    const unloading = m.unload('a', { unloadDependents: false }).then(() => (done = true));
    await flush();
    expect(m.index(false)).toEqual([{ name: 'a', version: '1', state: 'UNLOADING' }]);
    expect(m.readyVersions('a')).toEqual([]);
    expect(done).toBe(false);
    on.lanes.held.get('a/1')?.open();
    await unloading;
    expect(on.log.slice(-2)).toEqual(['drain a/1 g1', 'unload a/1 g1']);
    expect(m.index(false)).toEqual([{ name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' }]);
    expect(on.statistics.find('a', '1')).toBeUndefined();
  });

  test('of an unknown name succeeds and leaves no trace', async () => {
    const m = on.manager();
    await m.unload('nosuch', { unloadDependents: false });
    expect(m.index(false)).toEqual([]);
  });

  test('forgives a failed load', async () => {
    on.source.models.set('a', new ServingError('INVALID_ARGUMENT', 'bad'));
    const m = on.manager({ startupModels: ['a'] });
    await m.start();
    expect(m.allReady()).toBe(false);
    await m.unload('a', { unloadDependents: false });
    expect(m.allReady()).toBe(true);
    expect(m.index(false)).toEqual([{ name: 'a' }]);
  });
});

describe('operations', () => {
  test('on one model run in order, those of another do not wait', async () => {
    on.source.set('a', { 1: 'x' });
    on.source.set('b', { 1: 'x' });
    on.worker.held.set('a/1', gate());
    const m = on.manager();
    const loading = m.load('a', {});
    const unloading = m.unload('a', { unloadDependents: false });
    await m.load('b', {});
    expect(on.log).toEqual(['load a/1 g1', 'load b/1 g2', 'open b/1 g2']);
    on.worker.held.get('a/1')?.open({ instances: ['a_0'], warnings: [], durationMs: 1 });
    await Promise.all([loading, unloading]);
    expect(on.log.slice(3)).toEqual(['open a/1 g1', 'drain a/1 g1', 'unload a/1 g1']);
  });

  test('stop drains everything and refuses later loads', async () => {
    on.source.set('a', { 1: 'x' });
    on.source.set('b', { 1: 'x' });
    const m = on.manager({ startupModels: ['*'] });
    await m.start();
    await m.stop();
    expect(on.log.filter((line) => line.startsWith('unload')).sort()).toEqual(['unload a/1 g1', 'unload b/1 g2']);
    expect(m.allReady()).toBe(false);
    await expect(m.load('a', {})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  test('a version without a living instance is not ready', async () => {
    on.source.set('a', { 1: 'x' });
    const m = on.manager({ startupModels: ['a'] });
    await m.start();
    const event = { model: 'a', version: '1', generation: 1, reason: 'killed' };
    m.noteInstance({ ...event, instance: 'a_0', state: 'down' });
    expect(m.allReady()).toBe(true);
    expect(m.isHealthy(m.resolve('a', '1'))).toBe(true);
    m.noteInstance({ ...event, instance: 'a_1', state: 'down' });
    expect(m.allReady()).toBe(false);
    expect(m.isHealthy(m.resolve('a', '1'))).toBe(false);
    m.noteInstance({ ...event, instance: 'a_1', state: 'ready' });
    expect(m.allReady()).toBe(true);
    expect(m.isHealthy(m.resolve('a', '1'))).toBe(true);
    m.noteInstance({ ...event, generation: 9, instance: 'a_1', state: 'down' });
    expect(m.allReady()).toBe(true);
  });
});

describe('resolve', () => {
  test('chooses the highest ready version by number and refuses with the words clients know', async () => {
    on.source.set('a', { 2: 'x', 10: 'x' });
    const m = on.manager();
    await m.load('a', {});
    expect(m.resolve('a', '').version).toBe('10');
    expect(m.resolve('a', '2').version).toBe('2');
    const thrown = (name: string, version: string): unknown => {
      try {
        return m.resolve(name, version);
      } catch (error) {
        return error;
      }
    };
    expect(thrown('nosuch', '')).toMatchObject({ code: 'NOT_FOUND', message: "Request for unknown model: 'nosuch' is not found" });
    expect(thrown('a', '3')).toMatchObject({ code: 'NOT_FOUND', message: "Request for unknown model: 'a' version 3 is not found" });
    expect(thrown('a', 'abc')).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining("specified version string 'abc'"),
    });
    expect(thrown('a', '-1')).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: "invalid model version specified '-1' , version should be an integral value > 0",
    });
  });
});
