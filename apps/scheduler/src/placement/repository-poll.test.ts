// Mode poll through the model manager: loads at start, follows the repository, and no model holds up another.
import { beforeEach, expect, test } from '@jest/globals';
import { ServingError } from '@paceline/protocol';
import type { ModelManager } from './model-manager.js';
import type { Observation } from './model-source.js';
import { flush, gate, PlacementFixture } from './testing/fakes.js';

const SECOND_US = 1_000_000;

let on: PlacementFixture;
let failures: ServingError[];
beforeEach(() => {
  on = new PlacementFixture();
  failures = [];
  // Long after the files of `look` have changed.
  on.clock.advance(100 * SECOND_US);
});

function look(versions: Readonly<Record<string, string>>, changedMs = 0): Map<string, Observation> {
  return new Map(Object.entries(versions).map(([name, print]) => [name, { rest: '', versions: new Map([['1', print]]), changedMs }]));
}

function manager(): ModelManager {
  return on.manager({ controlMode: 'poll', pollIntervalMs: 5000, onPollFailure: (error) => failures.push(error) });
}

/** The next polls, each at its time. */
async function poll(times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    on.clock.advance(5 * SECOND_US);
    await flush();
  }
}

const states = (m: ModelManager): Record<string, string | undefined> =>
  Object.fromEntries(m.index(false).map(({ name, state }) => [name, state]));

test('loads what is there at start without waiting for a second poll, then adds, changes and removes', async () => {
  on.source.set('a', { 1: 'x' });
  on.source.looks.push(look({ a: 'x' }));
  const m = manager();
  expect((await m.start()).models).toEqual([{ model: 'a', error: undefined }]);
  expect(on.source.requests).toEqual([{ versions: new Set(['1']) }]);
  on.source.set('b', { 1: 'x' });
  on.source.set('a', { 1: 'y' });
  on.source.looks.splice(0, 1, look({ a: 'y', b: 'x' }));
  await poll(1);
  expect(states(m)).toEqual({ a: 'READY', b: undefined });
  await poll(1);
  expect(states(m)).toEqual({ a: 'READY', b: 'READY' });
  expect(on.log.filter((line) => line.startsWith('load'))).toEqual(['load a/1 g1', 'load a/1 g2', 'load b/1 g3']);
  on.source.models.delete('a');
  on.source.looks.splice(0, 1, look({ b: 'x' }));
  await poll(1);
  expect(states(m)).toEqual({ a: 'UNAVAILABLE', b: 'READY' });
  await m.stop();
  await poll(3);
  expect(on.clock.armedCount).toBe(0);
});

test('looks twice at start when something has just been written, and leaves out what still grows', async () => {
  on.source.set('a', { 1: 'x' });
  on.source.set('b', { 1: 'x' });
  on.source.looks.push(look({ a: 'x', b: 'half' }, 99_000), look({ a: 'x', b: 'whole' }, 100_000));
  const m = manager();
  const starting = m.start();
  await flush();
  expect(on.log).toEqual([]);
  on.clock.advance(SECOND_US);
  expect((await starting).models.map(({ model }) => model)).toEqual(['a']);
  await poll(1);
  expect(states(m)).toEqual({ a: 'READY', b: 'READY' });
});

test('one broken or slow model holds up no other, and is READY at the next polls after it was mended', async () => {
  on.source.set('slow', { 1: 'x' });
  on.source.models.set('broken', new ServingError('INVALID_ARGUMENT', 'broken/config.pbtxt:3:1: no'));
  on.source.looks.push(look({}));
  const m = manager();
  await m.start();
  on.worker.held.set('slow/1', gate());
  on.source.looks.splice(0, 1, look({ broken: 'x', slow: 'x' }));
  await poll(2);
  on.source.set('good', { 1: 'x' });
  on.source.looks.splice(0, 1, look({ broken: 'x', slow: 'x', good: 'x' }));
  await poll(2);
  expect(states(m)).toEqual({ broken: 'UNAVAILABLE', good: 'READY', slow: 'LOADING' });
  expect(m.index(false).find(({ name }) => name === 'broken')?.reason).toBe('broken/config.pbtxt:3:1: no');
  on.source.set('broken', { 1: 'x' });
  on.source.looks.splice(0, 1, look({ broken: 'y', slow: 'x', good: 'x' }));
  await poll(2);
  expect(states(m)).toMatchObject({ broken: 'READY' });
  expect(m.allReady()).toBe(true);
});

test('a repository that cannot be read changes nothing, and polling goes on', async () => {
  on.source.set('a', { 1: 'x' });
  on.source.looks.push(look({ a: 'x' }));
  const m = manager();
  await m.start();
  on.source.looks.splice(0, 1, new ServingError('NOT_FOUND', 'gone'));
  await poll(3);
  expect(failures.map(({ message }) => message)).toEqual(['gone', 'gone', 'gone']);
  expect(states(m)).toEqual({ a: 'READY' });
  on.source.set('b', { 1: 'x' });
  on.source.looks.splice(0, 1, look({ a: 'x', b: 'x' }));
  await poll(2);
  expect(states(m)).toEqual({ a: 'READY', b: 'READY' });
});

test('control is refused', async () => {
  await expect(manager().load('a', {})).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: 'explicit model load / unload is not allowed if polling is enabled',
  });
});
