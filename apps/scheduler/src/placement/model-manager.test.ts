// The model manager against a fake worker and fake lanes: what is told to whom, in which order, and what is left after failures.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { create } from '@bufbuild/protobuf';
import { ServingError, type ServedModel } from '@paceline/protocol';
import { ModelConfigSchema, ModelInstanceGroup_Kind as Kind } from '@paceline/protocol/model-config';
import { StatisticsRegistry } from '@paceline/telemetry';
import type { LoadReport, LoadSpec, WorkerLink } from '@paceline/worker-rpc';
import type { LaneHost, LaneSpec } from './lane-host.js';
import type { ModelEvent } from './model-events.js';
import { ModelManager, type ModelManagerOptions } from './model-manager.js';
import type { ModelSource, SourceModel, SourceVersion } from './model-source.js';

/** A promise that the test settles. */
interface Gate<T> {
  readonly promise: Promise<T>;
  open(value: T): void;
  fail(error: Error): void;
}

function gate<T>(): Gate<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  return { promise, open: resolve, fail: reject };
}

const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class FakeSource implements ModelSource {
  readonly models = new Map<string, SourceModel | ServingError>();
  readonly overrides: (string | undefined)[] = [];

  open(): Promise<readonly string[]> {
    return Promise.resolve(['"stray.onnx" is ignored']);
  }

  names(): readonly string[] {
    return [...this.models.keys()].sort();
  }

  read(name: string, override: string | undefined): Promise<SourceModel | undefined> {
    this.overrides.push(override);
    const model = this.models.get(name);
    return model instanceof ServingError ? Promise.reject(model) : Promise.resolve(model);
  }

  set(name: string, versions: Readonly<Record<string, string>>, passiveGroup = false): void {
    this.models.set(name, { name, versions: Object.entries(versions).map(([version, print]) => good(name, version, print, passiveGroup)), warnings: ['a hint'] });
  }
}

function good(name: string, version: string, fingerprint: string, passiveGroup = false): SourceVersion {
  const groups = [{ name, kind: Kind.CPU, count: 2 }, ...(passiveGroup ? [{ name: 'spare', kind: Kind.CPU, count: 1, passive: true }] : [])];
  const config = create(ModelConfigSchema, { name, maxBatchSize: 8, instanceGroup: groups });
  return { version, fingerprint, ok: true, config, modelPath: `/r/${name}/${version}/model.onnx`, inputs: [], outputs: [], labels: new Map() };
}

/** Records calls in `log`; loads and drains finish at once unless the test holds them. */
class FakeWorker implements WorkerLink {
  readonly held = new Map<string, Gate<LoadReport>>();
  running = 0;
  mostRunning = 0;

  constructor(private readonly log: string[]) {}

  async load(spec: LoadSpec): Promise<LoadReport> {
    this.log.push(`load ${spec.model}/${spec.version} g${spec.generation}`);
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      const instances = spec.config.instanceGroup.flatMap((group) => Array.from({ length: group.count }, (_, i) => `${group.name}_${i}`));
      return (await this.held.get(`${spec.model}/${spec.version}`)?.promise) ?? { instances, warnings: ['from the worker'], durationMs: 1 };
    } finally {
      this.running -= 1;
    }
  }

  unload(model: string, version: string, generation: number): Promise<void> {
    this.log.push(`unload ${model}/${version} g${generation}`);
    return Promise.resolve();
  }

  execute(): void {
    throw new Error('placement executes nothing');
  }

  setListener(): void {
    throw new Error('placement does not listen');
  }
}

class FakeLanes implements LaneHost {
  readonly specs: LaneSpec[] = [];
  readonly held = new Map<string, Gate<void>>();

  constructor(private readonly log: string[]) {}

  open(spec: LaneSpec): void {
    this.specs.push(spec);
    this.log.push(`open ${spec.model}/${spec.version} g${spec.generation}`);
  }

  async drain(model: string, version: string, generation: number): Promise<void> {
    this.log.push(`drain ${model}/${version} g${generation}`);
    await this.held.get(`${model}/${version}`)?.promise;
  }
}

let log: string[];
let source: FakeSource;
let worker: FakeWorker;
let lanes: FakeLanes;
let statistics: StatisticsRegistry;
let events: ModelEvent[];

function manager(options: Partial<ModelManagerOptions> = {}): ModelManager {
  const made = new ModelManager({ source, worker, lanes, clock: new FakeClock(), statistics }, { controlMode: 'explicit', startupModels: [], ...options });
  made.subscribe((event) => events.push(event));
  return made;
}

beforeEach(() => {
  log = [];
  events = [];
  source = new FakeSource();
  worker = new FakeWorker(log);
  lanes = new FakeLanes(log);
  statistics = new StatisticsRegistry();
});

describe('start', () => {
  test('mode none loads every model; one that is broken fails alone', async () => {
    source.set('a', { 1: 'x' });
    source.models.set('broken', new ServingError('INVALID_ARGUMENT', 'broken/config.pbtxt:3:1: no'));
    source.set('z', { 1: 'x' });
    const m = manager({ controlMode: 'none' });
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
    source.set('a', { 1: 'x' });
    source.set('b', { 1: 'x' });
    const one = manager({ startupModels: ['b'] });
    await one.start();
    expect(one.index(false)).toEqual([{ name: 'a' }, { name: 'b', version: '1', state: 'READY' }]);
    expect(one.allReady()).toBe(true);
    const all = manager({ startupModels: ['*'] });
    await all.start();
    expect(all.served().map(({ name }) => name)).toEqual(['a', 'b']);
    await expect(manager({ startupModels: ['*', 'a'] }).start()).rejects.toThrow(/Wildcard model name '\*' must be the ONLY startup model/);
  });

  test('loads at most as many models side by side as there are load threads', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      source.set(name, { 1: 'x' });
      worker.held.set(`${name}/1`, gate());
    }
    const starting = manager({ controlMode: 'none', loadThreadCount: 2 }).start();
    await flush();
    expect(log).toEqual(['load a/1 g1', 'load b/1 g2']);
    for (const [, held] of worker.held) held.open({ instances: ['i_0'], warnings: [], durationMs: 1 });
    const { models } = await starting;
    expect(models.every(({ error }) => error === undefined)).toBe(true);
    expect(worker.mostRunning).toBe(2);
  });

  test('control is refused in mode none', async () => {
    const m = manager({ controlMode: 'none' });
    const refused = { code: 'UNAVAILABLE', message: 'explicit model load / unload is not allowed if polling is enabled' };
    await expect(m.load('a', {})).rejects.toMatchObject(refused);
    await expect(m.unload('a', { unloadDependents: false })).rejects.toMatchObject(refused);
  });
});

describe('load', () => {
  test('opens the lane before the catalog names the version, without passive instances', async () => {
    source.set('a', { 1: 'x' }, true);
    const m = manager();
    let seen: readonly ServedModel[] | undefined;
    lanes.open = (spec) => {
      seen = m.served();
      lanes.specs.push(spec);
    };
    await m.load('a', {});
    expect(seen).toEqual([]);
    expect(lanes.specs[0]?.instances).toEqual(['a_0', 'a_1']);
    expect(m.resolve('a', '').version).toBe('1');
    expect(events.map(({ state }) => state)).toEqual(['LOADING', 'READY']);
    expect(events[1]).toMatchObject({ warnings: ['a hint', 'from the worker'], instances: ['a_0', 'a_1', 'spare_0'] });
    expect(statistics.find('a', '1')).toBeDefined();
  });

  test('of what is loaded and unchanged does nothing', async () => {
    source.set('a', { 1: 'x', 2: 'x' });
    const m = manager();
    await m.load('a', {});
    const before = m.resolve('a', '2');
    log.length = 0;
    await m.load('a', {});
    expect(log).toEqual([]);
    expect(m.resolve('a', '2')).toBe(before);
  });

  test('of a changed version makes new instances, switches, drains, unloads; an unchanged version stays', async () => {
    source.set('a', { 1: 'x', 2: 'x' });
    const m = manager();
    await m.load('a', {});
    log.length = 0;
    source.set('a', { 1: 'x', 2: 'y' });
    worker.held.set('a/2', gate());
    lanes.held.set('a/2', gate());
    const old = m.resolve('a', '2');
    const loading = m.load('a', {});
    await flush();
    expect(m.resolve('a', '2')).toBe(old);
    expect(m.index(false).map(({ state }) => state)).toEqual(['READY', 'READY']);
    worker.held.get('a/2')?.open({ instances: ['n_0'], warnings: [], durationMs: 1 });
    await loading;
    expect(m.resolve('a', '2')).not.toBe(old);
    expect(log).toEqual(['load a/2 g3', 'open a/2 g3', 'drain a/2 g2']);
    lanes.held.get('a/2')?.open();
    await flush();
    expect(log.at(-1)).toBe('unload a/2 g2');
  });

  test('that deselects a version takes it out of service', async () => {
    source.set('a', { 1: 'x', 2: 'x' });
    const m = manager();
    await m.load('a', {});
    source.set('a', { 2: 'x' });
    await m.load('a', {});
    await flush();
    expect(m.index(false)).toEqual([
      { name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' },
      { name: 'a', version: '2', state: 'READY' },
    ]);
    expect(log.slice(-2)).toEqual(['drain a/1 g1', 'unload a/1 g1']);
    expect(() => m.resolve('a', '1')).toThrow(/version 1 is not at ready state/);
  });

  test('that fails in the worker leaves nothing of it, and names the version and the reason without the path', async () => {
    source.set('a', { 1: 'x', 2: 'x' });
    worker.held.set('a/2', gate());
    const m = manager();
    const loading = m.load('a', {});
    worker.held.get('a/2')?.fail(new ServingError('INTERNAL', 'onnx runtime error: /r/a/2/model.onnx is bad'));
    await expect(loading).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: "load failed for model 'a': version 2 is at UNAVAILABLE state: Internal: onnx runtime error: a/2/model.onnx is bad;\n",
    });
    expect(log.at(-1)).toBe('unload a/1 g1');
    expect(lanes.specs).toEqual([]);
    expect(m.index(false)).toEqual([
      { name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'unloaded, since version 2 of the same load failed' },
      { name: 'a', version: '2', state: 'UNAVAILABLE', reason: 'Internal: onnx runtime error: a/2/model.onnx is bad' },
    ]);
    expect(() => m.resolve('a', '')).toThrow("Request for unknown model: 'a' has no available versions");
  });

  test('that fails over a loaded model keeps the loaded one serving and the server ready', async () => {
    source.set('a', { 1: 'x' });
    const m = manager({ startupModels: ['a'] });
    await m.start();
    const old = m.resolve('a', '1');
    source.models.set('a', { name: 'a', warnings: [], versions: [{ version: '1', fingerprint: 'y', ok: false, error: new ServingError('INVALID_ARGUMENT', 'no') }] });
    await expect(m.load('a', {})).rejects.toThrow(/version 1 is at UNAVAILABLE state: Invalid argument: no;/);
    source.models.set('a', new ServingError('INVALID_ARGUMENT', 'worse'));
    await expect(m.load('a', {})).rejects.toThrow(/failed to poll from model repository: worse/);
    expect(m.resolve('a', '1')).toBe(old);
    expect(m.index(false)).toEqual([{ name: 'a', version: '1', state: 'READY' }]);
    expect(m.allReady()).toBe(true);
    expect(log.filter((line) => line.startsWith('unload'))).toEqual([]);
  });

  test('of a model without a selected version, and of one that does not exist', async () => {
    source.set('a', {});
    const m = manager();
    await expect(m.load('a', {})).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: "load failed for model 'a': at least one version must be available under the version policy of model 'a'\n",
    });
    await expect(m.load('nosuch', {})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: /^failed to load 'nosuch', failed to poll from model repository/ });
    expect(m.index(false).map(({ name }) => name)).toEqual(['a']);
  });

  test('takes a configuration, and no other parameter', async () => {
    source.set('a', { 1: 'x' });
    const m = manager();
    await m.load('a', { config: '{}' });
    expect(source.overrides).toEqual(['{}']);
    await expect(m.load('a', { config: 5n })).rejects.toThrow("load parameter 'config' must be a string, but it is a bigint");
    await expect(m.load('a', { 'file:1/model.onnx': new Uint8Array() })).rejects.toThrow(/'file:1\/model.onnx' is not served/);
    await expect(m.load('a', { other: 'x' })).rejects.toThrow("unrecognized load parameter 'other'.");
  });
});

describe('unload', () => {
  test('leaves the routing at once and resolves when the lane has drained', async () => {
    source.set('a', { 1: 'x' });
    const m = manager();
    await m.load('a', {});
    lanes.held.set('a/1', gate());
    let done = false;
    const unloading = m.unload('a', { unloadDependents: false }).then(() => (done = true));
    await flush();
    expect(m.index(false)).toEqual([{ name: 'a', version: '1', state: 'UNLOADING' }]);
    expect(m.readyVersions('a')).toEqual([]);
    expect(done).toBe(false);
    lanes.held.get('a/1')?.open();
    await unloading;
    expect(log.slice(-2)).toEqual(['drain a/1 g1', 'unload a/1 g1']);
    expect(m.index(false)).toEqual([{ name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' }]);
    expect(statistics.find('a', '1')).toBeUndefined();
  });

  test('of an unknown name succeeds and leaves no trace', async () => {
    const m = manager();
    await m.unload('nosuch', { unloadDependents: false });
    expect(m.index(false)).toEqual([]);
  });

  test('forgives a failed load', async () => {
    source.models.set('a', new ServingError('INVALID_ARGUMENT', 'bad'));
    const m = manager({ startupModels: ['a'] });
    await m.start();
    expect(m.allReady()).toBe(false);
    await m.unload('a', { unloadDependents: false });
    expect(m.allReady()).toBe(true);
    expect(m.index(false)).toEqual([{ name: 'a' }]);
  });
});

describe('operations', () => {
  test('on one model run in order, those of another do not wait', async () => {
    source.set('a', { 1: 'x' });
    source.set('b', { 1: 'x' });
    worker.held.set('a/1', gate());
    const m = manager();
    const loading = m.load('a', {});
    const unloading = m.unload('a', { unloadDependents: false });
    await m.load('b', {});
    expect(log).toEqual(['load a/1 g1', 'load b/1 g2', 'open b/1 g2']);
    worker.held.get('a/1')?.open({ instances: ['a_0'], warnings: [], durationMs: 1 });
    await Promise.all([loading, unloading]);
    expect(log.slice(3)).toEqual(['open a/1 g1', 'drain a/1 g1', 'unload a/1 g1']);
  });

  test('stop drains everything and refuses later loads', async () => {
    source.set('a', { 1: 'x' });
    source.set('b', { 1: 'x' });
    const m = manager({ startupModels: ['*'] });
    await m.start();
    await m.stop();
    expect(log.filter((line) => line.startsWith('unload')).sort()).toEqual(['unload a/1 g1', 'unload b/1 g2']);
    expect(m.allReady()).toBe(false);
    await expect(m.load('a', {})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  test('a version without a living instance is not ready', async () => {
    source.set('a', { 1: 'x' });
    const m = manager({ startupModels: ['a'] });
    await m.start();
    const event = { model: 'a', version: '1', generation: 1, reason: 'killed' };
    m.noteInstance({ ...event, instance: 'a_0', state: 'down' });
    expect(m.allReady()).toBe(true);
    m.noteInstance({ ...event, instance: 'a_1', state: 'down' });
    expect(m.allReady()).toBe(false);
    m.noteInstance({ ...event, instance: 'a_1', state: 'ready' });
    expect(m.allReady()).toBe(true);
    m.noteInstance({ ...event, generation: 9, instance: 'a_1', state: 'down' });
    expect(m.allReady()).toBe(true);
  });
});

describe('resolve', () => {
  test('chooses the highest ready version by number and refuses with the words clients know', async () => {
    source.set('a', { 2: 'x', 10: 'x' });
    const m = manager();
    await m.load('a', {});
    expect(m.resolve('a', '').version).toBe('10');
    expect(m.resolve('a', '-1').version).toBe('10');
    expect(m.resolve('a', '2').version).toBe('2');
    const thrown = (name: string, version: string): unknown => {
      try {
        return m.resolve(name, version);
      } catch (error) {
        return error;
      }
    };
    expect(thrown('nosuch', '')).toMatchObject({ code: 'INVALID_ARGUMENT', message: "Request for unknown model: 'nosuch' is not found" });
    expect(thrown('a', '3')).toMatchObject({ code: 'NOT_FOUND', message: "Request for unknown model: 'a' version 3 is not found" });
    expect(thrown('a', 'abc')).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining("specified version string 'abc'") });
  });
});
