// Single decisions of the planner, on clusters small enough to see why.
import { describe, expect, test } from '@jest/globals';
import { planPlacement } from './plan.js';
import type { PlacedLoad, PlacementTarget, PlacementWorker } from './target.js';

const MIB = 1024 * 1024;

function target(
  model: string,
  over: Partial<PlacementTarget> & { readonly bytes?: number; readonly kind?: 'cpu' | 'gpu' } = {},
): PlacementTarget {
  const { bytes = 10 * MIB, kind = 'cpu', ...rest } = over;
  return {
    model,
    version: '1',
    generation: 1,
    needs: { kind, devices: [], memoryBytes: bytes },
    replicas: Infinity,
    active: true,
    excluded: new Set(),
    ...rest,
  };
}

function load(model: string, state: PlacedLoad['state'] = 'active', bytes = 10 * MIB, generation = 1): PlacedLoad {
  return { model, version: '1', generation, state, kind: 'cpu', memoryBytes: bytes };
}

function worker(
  id: string,
  loads: readonly PlacedLoad[] = [],
  over: Partial<PlacementWorker> & { readonly bytes?: number } = {},
): PlacementWorker {
  const { bytes = 100 * MIB, ...rest } = over;
  return { id, devices: [{ id: 'cpu', kind: 'cpu', memoryBytes: bytes }], draining: false, loads, ...rest };
}

function plan(workers: readonly PlacementWorker[], targets: readonly PlacementTarget[]): string[] {
  const { actions, unplaced } = planPlacement({ workers, targets });
  return [
    ...actions.map(({ kind, worker: id, model, generation }) => `${kind} ${model} g${generation} on ${id}`),
    ...unplaced.map(({ model, why }) => `${model}: ${why}`),
  ].sort();
}

describe('replicas', () => {
  test('every worker has one by default, a cap keeps it to some', () => {
    const three = [worker('a'), worker('b'), worker('c')];
    expect(plan(three, [target('m')])).toEqual(['load m g1 on a', 'load m g1 on b', 'load m g1 on c']);
    expect(plan(three, [target('m', { replicas: 2 })])).toHaveLength(2);
  });

  test('what has begun is not begun again, and what is loaded is activated once the target is', () => {
    const workers = [worker('a', [load('m', 'loading')]), worker('b', [load('m', 'loaded')])];
    expect(plan(workers, [target('m', { active: false })])).toEqual([]);
    expect(plan(workers, [target('m')])).toEqual(['activate m g1 on b']);
  });

  test('a worker that joins gets what it lacks', () => {
    expect(plan([worker('a', [load('m')]), worker('new')], [target('m')])).toEqual(['load m g1 on new']);
    expect(plan([worker('a', [load('m')]), worker('new')], [target('m', { replicas: 1 })])).toEqual([]);
  });

  test('more than the cap go, one of those that serve stays', () => {
    const workers = [worker('a', [load('m')]), worker('b', [load('m')])];
    expect(plan(workers, [target('m', { replicas: 1 })])).toHaveLength(1);
    const loading = [worker('a', [load('m')]), worker('b', [load('m', 'loading')])];
    expect(plan(loading, [target('m', { replicas: 1 })])).toEqual([]);
  });

  test('models with one replica are spread over equal workers', () => {
    const models = Array.from({ length: 30 }, (_, i) => target(`m${i}`, { replicas: 1 }));
    const placed = planPlacement({
      workers: [worker('a', [], { bytes: 1000 * MIB }), worker('b', [], { bytes: 1000 * MIB })],
      targets: models,
    });
    expect(placed.actions.filter((action) => action.worker === 'a')).toHaveLength(15);
  });
});

describe('draining', () => {
  test('its only replica is loaded elsewhere before it goes', () => {
    const leaving = worker('a', [load('m')], { draining: true });
    expect(plan([leaving, worker('b')], [target('m', { replicas: 1 })])).toEqual(['load m g1 on b']);
    expect(plan([leaving, worker('b', [load('m', 'loading')])], [target('m', { replicas: 1 })])).toEqual([]);
    expect(plan([leaving, worker('b', [load('m', 'loaded')])], [target('m', { replicas: 1 })])).toEqual(['activate m g1 on b']);
    expect(plan([leaving, worker('b', [load('m')])], [target('m', { replicas: 1 })])).toEqual(['retire m g1 on a']);
  });

  test('without another place it keeps what it has', () => {
    expect(plan([worker('a', [load('m')], { draining: true })], [target('m')])).toEqual(['m: no_worker']);
  });
});

describe('memory', () => {
  test('a large model goes where most is free, and extra replicas only where there is room', () => {
    const workers = [worker('a', [load('x')]), worker('b')];
    const x = target('x', { replicas: 1 });
    expect(plan(workers, [x, target('m', { bytes: 80 * MIB, replicas: 1 })])).toEqual(['load m g1 on b']);
    expect(plan(workers, [x, target('m', { bytes: 95 * MIB })])).toEqual(['load m g1 on b']);
  });

  test('a spare replica makes way for the first of another model, and the place is kept for it', () => {
    const workers = [worker('a', [load('x', 'active', 60 * MIB)]), worker('b', [load('x', 'active', 60 * MIB)])];
    const targets = [target('x', { bytes: 60 * MIB }), target('m', { bytes: 50 * MIB })];
    const [only, ...others] = plan(workers, targets);
    expect(others).toEqual([]);
    expect(only).toMatch(/^retire x g1 on [ab]$/);
    const during = [worker('a', [load('x', 'retiring', 60 * MIB)]), worker('b', [load('x', 'active', 60 * MIB)])];
    expect(plan(during, targets)).toEqual([]);
    expect(plan([worker('a'), worker('b', [load('x', 'active', 60 * MIB)])], targets)).toEqual(['load m g1 on a']);
  });

  test('the last replica of a model makes way for nobody', () => {
    const workers = [worker('a', [load('x', 'active', 60 * MIB)])];
    expect(plan(workers, [target('x', { bytes: 60 * MIB }), target('m', { bytes: 50 * MIB })])).toEqual(['m: no_room']);
  });

  test('what a replica was seen to take counts above the estimate', () => {
    const workers = [worker('a', [load('m', 'active', 60 * MIB)]), worker('b', [], { bytes: 50 * MIB })];
    expect(plan(workers, [target('m', { bytes: 1 })])).toEqual([]);
  });

  test('unknown memory holds everything', () => {
    expect(plan([worker('a', [], { bytes: 0 })], [target('m', { bytes: 1e15 })])).toEqual(['load m g1 on a']);
  });
});

describe('devices', () => {
  const gpus = worker('g', [], { devices: [{ id: 'cpu', kind: 'cpu', memoryBytes: 0 }, { id: 'gpu:0', kind: 'gpu', memoryBytes: 100 * MIB }] }); // prettier-ignore

  test('a GPU model goes to a worker with GPUs, with the one it names', () => {
    expect(plan([worker('a'), gpus], [target('m', { kind: 'gpu' })])).toEqual(['load m g1 on g']);
    const named = (id: string): PlacementTarget => target('m', { needs: { kind: 'gpu', devices: [id], memoryBytes: 1 } });
    expect(plan([gpus], [named('gpu:0')])).toEqual(['load m g1 on g']);
    expect(plan([gpus], [named('gpu:1')])).toEqual(['m: no_device']);
    expect(plan([gpus], [target('m', { kind: 'gpu', bytes: 101 * MIB })])).toEqual(['m: no_room']);
  });

  test('a worker where it failed is left out', () => {
    expect(plan([worker('a'), worker('b')], [target('m', { excluded: new Set(['a']) })])).toEqual(['load m g1 on b']);
    expect(plan([worker('a')], [target('m', { excluded: new Set(['a']) })])).toEqual(['m: excluded']);
  });
});

describe('leftovers', () => {
  test('a load of no target is retired; one that still answers only after its successor is active', () => {
    expect(plan([worker('a', [load('old')])], [])).toEqual(['retire old g1 on a']);
    const next = target('m', { generation: 2 });
    expect(plan([worker('a', [load('m'), load('m', 'loaded', 1, 2)])], [next])).toEqual(['activate m g2 on a']);
    expect(plan([worker('a', [load('m'), load('m', 'active', 1, 2)])], [next])).toEqual(['retire m g1 on a']);
  });
});
