// From look to look: what settles, what waits, and what is asked for only once.
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Observation } from './model-source.js';
import { RepositoryChanges } from './repository-changes.js';

type Seen = Readonly<Record<string, { readonly rest?: string; readonly versions: Readonly<Record<string, string>> }>>;

let changes: RepositoryChanges;
beforeEach(() => {
  changes = new RepositoryChanges();
});

/** What one look leads to, as short texts. */
function look(seen: Seen): string[] {
  const models = Object.entries(seen).map(
    ([name, { rest = '', versions }]) =>
      [name, { rest, versions: new Map(Object.entries(versions)), changedMs: 0 } satisfies Observation] as const,
  );
  return changes
    .next(new Map(models))
    .map((action) => (action.kind === 'load' ? `load ${action.model} ${[...action.versions].join(',')}` : `unload ${action.model}`));
}

/** Two equal looks: what was seen has settled. */
function settle(seen: Seen): string[] {
  return [...look(seen), ...look(seen)];
}

test('a model is loaded when two looks found it the same, and then left alone', () => {
  expect(look({ a: { versions: { 1: 'x' } } })).toEqual([]);
  expect(look({ a: { versions: { 1: 'x' } } })).toEqual(['load a 1']);
  expect(look({ a: { versions: { 1: 'x' } } })).toEqual([]);
});

test('a version that is being copied does not count, however long that takes, and the others are served meanwhile', () => {
  expect(settle({ a: { versions: { 1: 'x' } } })).toEqual(['load a 1']);
  for (const size of ['10', '20', '30']) expect(look({ a: { versions: { 1: 'x', 2: size } } })).toEqual([]);
  expect(look({ a: { versions: { 1: 'x', 2: '30' } } })).toEqual(['load a 1,2']);
});

test('a new model is not asked for before one of its versions has settled', () => {
  for (const size of ['10', '20']) expect(look({ a: { versions: { 1: size } } })).toEqual([]);
  expect(look({ a: { versions: { 1: '20' } } })).toEqual(['load a 1']);
  // No version at all is a fault of its own, which the load reports.
  expect(settle({ b: { versions: {} }, a: { versions: { 1: '20' } } })).toEqual(['load b ']);
});

test('a loaded version that is overwritten holds the model as it is until that has ended', () => {
  settle({ a: { versions: { 1: 'x', 2: 'y' } } });
  expect(look({ a: { versions: { 1: 'half', 2: 'y' } } })).toEqual([]);
  expect(look({ a: { versions: { 1: 'new', 2: 'y' } } })).toEqual([]);
  expect(look({ a: { versions: { 1: 'new', 2: 'y' } } })).toEqual(['load a 1,2']);
});

test('a changed configuration and a removed version are new loads', () => {
  settle({ a: { rest: 'c1', versions: { 1: 'x', 2: 'y' } } });
  expect(look({ a: { rest: 'c2', versions: { 1: 'x', 2: 'y' } } })).toEqual([]);
  expect(look({ a: { rest: 'c2', versions: { 1: 'x', 2: 'y' } } })).toEqual(['load a 1,2']);
  expect(look({ a: { rest: 'c2', versions: { 2: 'y' } } })).toEqual(['load a 2']);
});

describe('a model that is gone', () => {
  test('is unloaded at once, once', () => {
    settle({ a: { versions: { 1: 'x' } }, b: { versions: { 1: 'x' } } });
    expect(look({ b: { versions: { 1: 'x' } } })).toEqual(['unload a']);
    expect(look({ b: { versions: { 1: 'x' } } })).toEqual([]);
  });

  test('and was never asked for is forgotten', () => {
    look({ a: { versions: { 1: 'x' } } });
    expect(look({})).toEqual([]);
  });

  test('and comes back is new', () => {
    settle({ a: { versions: { 1: 'x' } } });
    look({});
    expect(settle({ a: { versions: { 1: 'x' } } })).toEqual(['load a 1']);
  });
});
