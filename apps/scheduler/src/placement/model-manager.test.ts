// Loading: what is told to worker and lanes, in which order, and what is left after failures.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError, type ServedModel } from '@paceline/protocol';
import type { LoadReport } from '@paceline/worker-rpc';
import type { SourceModel } from './model-source.js';
import { flush, gate, PlacementFixture } from './testing/fakes.js';

let on: PlacementFixture;
beforeEach(() => {
  on = new PlacementFixture();
});

describe('start', () => {
  test('mode none loads every model; one that is broken fails alone', async () => {
    on.source.set('a', { 1: 'x' });
    on.source.models.set('broken', new ServingError('INVALID_ARGUMENT', 'broken/config.pbtxt:3:1: no'));
    on.source.set('z', { 1: 'x' });
    const m = on.manager({ controlMode: 'none' });
    expect(m.allReady()).toBe(false);
    const report = await m.start();
    expect(report.warnings).toHaveLength(1);
    expect(report.models.map(({ model, error }) => [model, error?.message])).toEqual([
      ['a', undefined],
      ['broken', "failed to load 'broken', failed to poll from model repository: broken/config.pbtxt:3:1: no"],
      ['z', undefined],
    ]);
    expect(m.index(false)).toEqual([
      { name: 'a', version: '1', state: 'READY' },
      { name: 'broken', state: 'UNAVAILABLE', reason: 'broken/config.pbtxt:3:1: no' },
      { name: 'z', version: '1', state: 'READY' },
    ]);
    expect(m.index(true).map(({ name }) => name)).toEqual(['a', 'z']);
    expect(m.allReady()).toBe(false);
  });

  test('mode explicit loads only what is named, or everything with *', async () => {
    on.source.set('a', { 1: 'x' });
    on.source.set('b', { 1: 'x' });
    const one = on.manager({ startupModels: ['b'] });
    await one.start();
    expect(one.index(false)).toEqual([{ name: 'a' }, { name: 'b', version: '1', state: 'READY' }]);
    expect(one.allReady()).toBe(true);
    const all = on.manager({ startupModels: ['*'] });
    await all.start();
    expect(all.served().map(({ name }) => name)).toEqual(['a', 'b']);
    await expect(on.manager({ startupModels: ['*', 'a'] }).start()).rejects.toThrow(
      /Wildcard model name '\*' must be the ONLY startup model/,
    );
  });

  test('instances of two models on one GPU share its credits', async () => {
    for (const name of ['a', 'b']) {
      on.source.set(name, { 1: 'x' });
      const held = gate<LoadReport>();
      held.open({ instances: ['g_0', 'c_0'], devices: ['gpu:0', 'cpu'], warnings: [], durationMs: 1 });
      on.worker.held.set(`${name}/1`, held);
    }
    await on.manager({ controlMode: 'none' }).start();
    const [a, b] = on.lanes.specs.map(({ deviceOf }) => deviceOf);
    expect(a?.('g_0')).toMatchObject({ limit: 1 });
    expect(a?.('g_0')?.slot).toBe(b?.('g_0')?.slot);
    expect(a?.('c_0')).toBeUndefined();
  });

  test('loads at most as many models side by side as there are load threads', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      on.source.set(name, { 1: 'x' });
      on.worker.held.set(`${name}/1`, gate());
    }
    const starting = on.manager({ controlMode: 'none', loadThreadCount: 2 }).start();
    await flush();
    expect(on.log).toEqual(['load a/1 g1', 'load b/1 g2']);
    for (const [, held] of on.worker.held) held.open({ instances: ['i_0'], warnings: [], durationMs: 1 });
    const { models } = await starting;
    expect(models.every(({ error }) => error === undefined)).toBe(true);
    expect(on.worker.mostRunning).toBe(2);
  });

  test('control is refused in mode none', async () => {
    const m = on.manager({ controlMode: 'none' });
    const refused = { code: 'UNAVAILABLE', message: 'explicit model load / unload is not allowed if polling is enabled' };
    await expect(m.load('a', {})).rejects.toMatchObject(refused);
    await expect(m.unload('a', { unloadDependents: false })).rejects.toMatchObject(refused);
  });
});

describe('load', () => {
  test('opens the lane before the catalog names the version, without passive instances', async () => {
    on.source.set('a', { 1: 'x' }, true);
    const m = on.manager();
    let seen: readonly ServedModel[] | undefined;
    on.lanes.open = (spec) => {
      seen = m.served();
      on.lanes.specs.push(spec);
    };
    await m.load('a', {});
    expect(seen).toEqual([]);
    expect(on.lanes.specs[0]?.instances).toEqual(['a_0', 'a_1']);
    expect(m.resolve('a', '').version).toBe('1');
    expect(on.events.map(({ state }) => state)).toEqual(['LOADING', 'READY']);
    expect(on.events[1]).toMatchObject({ warnings: ['a hint', 'from the worker'], instances: ['a_0', 'a_1', 'spare_0'] });
    expect(on.statistics.find('a', '1')).toBeDefined();
  });

  test('of what is loaded and unchanged does nothing', async () => {
    on.source.set('a', { 1: 'x', 2: 'x' });
    const m = on.manager();
    await m.load('a', {});
    const before = m.resolve('a', '2');
    on.log.length = 0;
    await m.load('a', {});
    expect(on.log).toEqual([]);
    expect(m.resolve('a', '2')).toBe(before);
  });

  test('of a changed version makes new instances, switches, drains, unloads; an unchanged version stays', async () => {
    on.source.set('a', { 1: 'x', 2: 'x' });
    const m = on.manager();
    await m.load('a', {});
    on.log.length = 0;
    on.source.set('a', { 1: 'x', 2: 'y' });
    on.worker.held.set('a/2', gate());
    on.lanes.held.set('a/2', gate());
    const old = m.resolve('a', '2');
    const loading = m.load('a', {});
    await flush();
    expect(m.resolve('a', '2')).toBe(old);
    expect(m.index(false).map(({ state }) => state)).toEqual(['READY', 'READY']);
    on.worker.held.get('a/2')?.open({ instances: ['n_0'], warnings: [], durationMs: 1 });
    await loading;
    expect(m.resolve('a', '2')).not.toBe(old);
    expect(on.log).toEqual(['load a/2 g3', 'open a/2 g3', 'drain a/2 g2']);
    on.lanes.held.get('a/2')?.open();
    await flush();
    expect(on.log.at(-1)).toBe('unload a/2 g2');
  });

  test('that deselects a version takes it out of service', async () => {
    on.source.set('a', { 1: 'x', 2: 'x' });
    const m = on.manager();
    await m.load('a', {});
    on.source.set('a', { 2: 'x' });
    await m.load('a', {});
    await flush();
    expect(m.index(false)).toEqual([
      { name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' },
      { name: 'a', version: '2', state: 'READY' },
    ]);
    expect(on.log.slice(-2)).toEqual(['drain a/1 g1', 'unload a/1 g1']);
    expect(() => m.resolve('a', '1')).toThrow(/version 1 is not at ready state/);
  });

  test('that fails in the worker leaves nothing of it, and names the version and the reason without the path', async () => {
    on.source.set('a', { 1: 'x', 2: 'x' });
    on.worker.held.set('a/2', gate());
    const m = on.manager();
    const loading = m.load('a', {});
    on.worker.held.get('a/2')?.fail(new ServingError('INTERNAL', 'onnx runtime error: /r/a/2/model.onnx is bad'));
    await expect(loading).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: "load failed for model 'a': version 2 is at UNAVAILABLE state: Internal: onnx runtime error: a/2/model.onnx is bad;\n",
    });
    expect(on.log.at(-1)).toBe('unload a/1 g1');
    expect(on.lanes.specs).toEqual([]);
    expect(m.index(false)).toEqual([
      { name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'unloaded, since version 2 of the same load failed' },
      { name: 'a', version: '2', state: 'UNAVAILABLE', reason: 'Internal: onnx runtime error: a/2/model.onnx is bad' },
    ]);
    expect(() => m.resolve('a', '')).toThrow("Request for unknown model: 'a' has no available versions");
  });

  test('that fails over a loaded model keeps the loaded one serving and the server ready', async () => {
    on.source.set('a', { 1: 'x' });
    const m = on.manager({ startupModels: ['a'] });
    await m.start();
    const old = m.resolve('a', '1');
    on.source.models.set('a', {
      name: 'a',
      warnings: [],
      versions: [{ version: '1', fingerprint: 'y', ok: false, error: new ServingError('INVALID_ARGUMENT', 'no') }],
    });
    await expect(m.load('a', {})).rejects.toThrow(/version 1 is at UNAVAILABLE state: Invalid argument: no;/);
    on.source.models.set('a', new ServingError('INVALID_ARGUMENT', 'worse'));
    await expect(m.load('a', {})).rejects.toThrow(/failed to poll from model repository: worse/);
    expect(m.resolve('a', '1')).toBe(old);
    expect(m.index(false)).toEqual([{ name: 'a', version: '1', state: 'READY' }]);
    expect(m.allReady()).toBe(true);
    expect(on.log.filter((line) => line.startsWith('unload'))).toEqual([]);
  });

  test('of a model without a selected version, and of one that does not exist', async () => {
    on.source.set('a', {});
    const m = on.manager();
    await expect(m.load('a', {})).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: "load failed for model 'a': at least one version must be available under the version policy of model 'a'\n",
    });
    await expect(m.load('nosuch', {})).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: /^failed to load 'nosuch', failed to poll from model repository/,
    });
    expect(m.index(false).map(({ name }) => name)).toEqual(['a']);
  });

  test('of a broken model on request leaves the server ready; one it was started for does not, even if it is missing', async () => {
    on.source.models.set('broken', new ServingError('INVALID_ARGUMENT', 'no'));
    const m = on.manager();
    await m.start();
    await expect(m.load('broken', {})).rejects.toThrow();
    expect(m.allReady()).toBe(true);
    const wanting = on.manager({ startupModels: ['missing'] });
    expect((await wanting.start()).models[0]?.error?.message).toMatch(/^failed to load 'missing'/);
    expect(wanting.allReady()).toBe(false);
    expect(wanting.index(false)).toEqual([
      { name: 'broken' },
      { name: 'missing', state: 'UNAVAILABLE', reason: 'no model repository has a folder of that name' },
    ]);
  });

  test('takes a configuration and files, and no other parameter', async () => {
    on.source.set('a', { 1: 'x' });
    const m = on.manager();
    await m.load('a', { config: '{}' });
    const bytes = Uint8Array.of(1);
    await m.load('a', { config: '{}', 'file:1/model.onnx': bytes });
    expect(on.source.requests).toEqual([{ config: '{}' }, { config: '{}', files: new Map([['1/model.onnx', bytes]]) }]);
    await expect(m.load('a', { config: 5n })).rejects.toThrow("load parameter 'config' must be a string, but it is a bigint");
    await expect(m.load('a', { config: '{}', 'file:1/x': 'text' })).rejects.toThrow("'file:1/x' must be the bytes of a file");
    await expect(m.load('a', { 'file:1/x': bytes })).rejects.toThrow("load parameter 'file:1/x' needs the parameter 'config' beside it");
    await expect(m.load('a', { other: 'x' })).rejects.toThrow("unrecognized load parameter 'other'.");
  });

  test('lets go of files of its own when nothing that was loaded from them is left', async () => {
    const m = on.manager();
    const released: string[] = [];
    const bring = async (print: string, versions: readonly string[], fails = false): Promise<void> => {
      on.source.set('a', Object.fromEntries(versions.map((version) => [version, print])));
      on.source.models.set('a', { ...(on.source.models.get('a') as SourceModel), release: async () => void released.push(print) });
      if (fails) on.worker.failures.push(new ServingError('INTERNAL', 'no'));
      await m.load('a', {}).catch(() => undefined);
      await flush();
    };
    await bring('first', ['1', '2']);
    await bring('failing', ['1', '2'], true);
    expect(released).toEqual(['failing']);
    await bring('second', ['2']);
    expect(released).toEqual(['failing', 'first']);
    await m.unload('a', { unloadDependents: false });
    expect(released).toEqual(['failing', 'first', 'second']);
    await bring('nothing', []);
    expect(released.at(-1)).toBe('nothing');
  });

  test('that fails in the worker is tried again as often as asked', async () => {
    on.source.set('a', { 1: 'x' });
    const m = on.manager({ loadRetryCount: 2 });
    const failure = new ServingError('INTERNAL', 'no');
    on.worker.failures.push(failure, failure);
    await m.load('a', {});
    expect(on.log).toEqual(['load a/1 g1', 'load a/1 g2', 'load a/1 g3', 'open a/1 g3']);
    on.source.set('b', { 1: 'x' });
    on.worker.failures.push(failure, failure, failure);
    await expect(m.load('b', {})).rejects.toThrow(/Internal: no/);
  });

  test('on request leaves the server ready while it runs and when it fails', async () => {
    on.source.set('a', { 1: 'x' });
    on.source.set('b', { 1: 'x' });
    const m = on.manager({ startupModels: ['a'] });
    await m.start();
    on.worker.held.set('b/1', gate());
    const loading = m.load('b', {});
    await flush();
    expect([m.index(false).at(-1)?.state, m.allReady()]).toEqual(['LOADING', true]);
    on.worker.held.get('b/1')?.fail(new ServingError('INTERNAL', 'no'));
    await expect(loading).rejects.toThrow();
    expect([m.index(false).at(-1)?.state, m.allReady()]).toEqual(['UNAVAILABLE', true]);
    await m.unload('a', { unloadDependents: false });
    expect(m.allReady()).toBe(true);
  });
});
