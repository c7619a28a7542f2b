// What a gateway of a cluster believes, and what not: routings, owners, pressure and model control from several schedulers.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { ServingError, type Epoch, type GatewayMessage, type RoutedModel, type Routing, type ServedModel } from '@paceline/protocol';
import { createLogger, SILENT, StatisticsRegistry } from '@paceline/telemetry';
import { InferService } from '../infer/infer-service.js';
import { fakeModel, FakeQueue } from '../testing/fake-lane.js';
import { oneRow } from '../testing/service-rig.js';
import { ClusterGateway, type HandoverQueue } from './cluster-gateway.js';

const A = 'a'.repeat(16);
const B = 'b'.repeat(16);
const epoch = (number: number, owner = A): Epoch => ({ number, owner });

function routed(name: string, version = '1', more: Partial<RoutedModel> = {}): RoutedModel {
  const model: ServedModel = { ...fakeModel({ name, inputs: [['IN', 'FP32', [-1, 2]]] }), version };
  return { model, generation: 1, partition: 3, healthy: true, ...more };
}

function routing(models: readonly RoutedModel[], more: Partial<Routing> = {}): Routing {
  const index = models.map(({ model }) => ({ name: model.name, version: model.version, state: 'READY' as const }));
  return { epoch: epoch(1), generation: 1, models, index, started: true, allReady: true, ...more };
}

class FakeHandover extends FakeQueue implements HandoverQueue {
  readonly owners: [number, Epoch][] = [];

  onOwner(partition: number, of: Epoch): void {
    this.owners.push([partition, of]);
  }

  onLost(): void {}

  tensorsOf(): undefined {
    return undefined;
  }
}

describe('a gateway of a cluster', () => {
  let clock: FakeClock;
  let told: [string, GatewayMessage][];
  let queue: FakeHandover;
  let statistics: StatisticsRegistry;
  let cluster: ClusterGateway;

  beforeEach(() => {
    clock = new FakeClock();
    told = [];
    queue = new FakeHandover();
    statistics = new StatisticsRegistry();
    const logger = createLogger(SILENT);
    const tell = (scheduler: string, message: GatewayMessage): void => void told.push([scheduler, message]);
    cluster = new ClusterGateway({ clock, logger, statistics, ownerLimitMs: 10_000, tell });
    cluster.attach(queue, () => undefined);
  });

  const publish = (scheduler: string, of: Routing): void => cluster.onSchedulerMessage(scheduler, { kind: 'routing', routing: of });
  const controls = (): [string, number][] =>
    told.flatMap(([scheduler, message]): [string, number][] => (message.kind === 'control' ? [[scheduler, message.id]] : []));

  describe('catalog', () => {
    test('resolves as every catalog does, in the same words', () => {
      const index = [
        { name: 'm', version: '2', state: 'READY' as const },
        { name: 'm', version: '10', state: 'READY' as const },
        { name: 'm', version: '11', state: 'UNAVAILABLE' as const, reason: 'broken' },
        { name: 'gone', version: '1', state: 'UNAVAILABLE' as const, reason: 'unloaded' },
        { name: 'never' },
      ];
      publish(A, routing([routed('m', '10'), routed('m', '2')], { index }));
      const { catalog } = cluster;
      expect(catalog.resolve('m', '').version).toBe('10');
      expect(catalog.resolve('m', '2').version).toBe('2');
      expect(catalog.readyVersions('m')).toEqual(['2', '10']);
      const refusal = (name: string, version: string): string => {
        try {
          return catalog.resolve(name, version).version;
        } catch (error) {
          return `${(error as ServingError).code} ${(error as ServingError).message}`;
        }
      };
      expect(refusal('m', '11')).toBe("UNAVAILABLE Request for unknown model: 'm' version 11 is not at ready state");
      expect(refusal('m', '3')).toBe("NOT_FOUND Request for unknown model: 'm' version 3 is not found");
      expect(refusal('m', '-1')).toBe("INVALID_ARGUMENT invalid model version specified '-1' , version should be an integral value > 0");
      expect(refusal('gone', '')).toBe("NOT_FOUND Request for unknown model: 'gone' has no available versions");
      expect(refusal('never', '')).toBe("NOT_FOUND Request for unknown model: 'never' is not found");
      expect(refusal('nobody', '1')).toBe("NOT_FOUND Request for unknown model: 'nobody' is not found");
      expect(catalog.index(true).map(({ version }) => version)).toEqual(['2', '10']);
      expect(catalog.index(false)).toEqual(index);
    });

    test('does not call a model unknown before it has been told of all', () => {
      const refusal = (name: string): unknown => {
        try {
          return cluster.catalog.resolve(name, '');
        } catch (error) {
          return error;
        }
      };
      expect(refusal('m')).toMatchObject({ code: 'UNAVAILABLE', reason: 'starting', retryAfterMs: 1000 });
      // A cluster that starts, or has lost everything: models come one by one.
      publish(A, routing([routed('n')], { started: false, index: [{ name: 'm', version: '1', state: 'LOADING' }] }));
      expect(refusal('n')).toMatchObject({ name: 'n' });
      expect(refusal('m')).toMatchObject({ code: 'UNAVAILABLE', reason: 'starting' });
      expect(refusal('other')).toMatchObject({ code: 'UNAVAILABLE', reason: 'starting' });
      publish(A, routing([], { generation: 2 }));
      expect(refusal('m')).toMatchObject({ code: 'NOT_FOUND', reason: 'unknown_model' });
    });

    test('keeps the object of a load until another load takes its place', () => {
      publish(A, routing([routed('m'), routed('n')]));
      const [m, n] = [cluster.catalog.resolve('m', ''), cluster.catalog.resolve('n', '')];
      publish(A, routing([routed('m', '1', { healthy: false, partition: 5 }), routed('n', '1', { generation: 2 })], { generation: 2 }));
      expect(cluster.catalog.resolve('m', '')).toBe(m);
      expect([cluster.catalog.isHealthy(m), cluster.catalog.partitionOf('m', '1')]).toEqual([false, 5]);
      expect(cluster.catalog.resolve('n', '')).not.toBe(n);
    });

    test('answers each routing with the one it goes by, so that whoever was overtaken learns of it', () => {
      publish(A, routing([routed('m')]));
      publish(B, routing([], { epoch: epoch(2, B), generation: 7 }));
      publish(A, routing([routed('m')], { generation: 2 }));
      publish(B, routing([routed('m')], { epoch: epoch(2, B), generation: 6 }));
      publish(B, routing([], { epoch: epoch(2, B), generation: 7 }));
      expect(cluster.catalog.served()).toEqual([]);
      expect(told.map(([scheduler, message]) => [scheduler, message.kind === 'routed' && message.generation])).toEqual([
        [A, 1],
        [B, 7],
        [A, 7],
        [B, 7],
        [B, 7],
      ]);
      expect(told[2]?.[1]).toEqual({ kind: 'routed', epoch: epoch(2, B), generation: 7 });
    });

    test('statistics end with the version', () => {
      publish(A, routing([routed('m')]));
      statistics.forVersion('m', '1').recordSuccess(5);
      publish(A, routing([], { generation: 2 }));
      expect(statistics.find('m', '1')).toBeUndefined();
    });

    test('nothing is ready before the first routing, nor while the start-up lasts', () => {
      expect([cluster.catalog.started, cluster.catalog.allReady()]).toEqual([false, false]);
      publish(A, routing([routed('m')], { started: false }));
      expect([cluster.catalog.started, cluster.catalog.allReady()]).toEqual([false, false]);
      publish(A, routing([routed('m')], { generation: 2, allReady: false }));
      expect([cluster.catalog.started, cluster.catalog.allReady()]).toEqual([true, false]);
    });
  });

  test('the queue hears of an owner when it is a new one', () => {
    const owns = (scheduler: string, of: Epoch): void => cluster.onSchedulerMessage(scheduler, { kind: 'owns', partition: 3, epoch: of });
    owns(A, epoch(4));
    owns(A, epoch(4));
    owns(B, epoch(3, B));
    owns(B, epoch(4, B));
    expect(queue.owners).toEqual([[3, epoch(4)]]);
    expect(cluster.owners.of(3)).toBe(A);
    // Both are told what they have to be above.
    const overtaken = [B, { kind: 'overtaken', partition: 3, epoch: epoch(4) }];
    expect(told).toEqual([overtaken, overtaken]);
    owns(B, epoch(5, B));
    expect([queue.owners.at(-1), cluster.owners.of(3)]).toEqual([[3, epoch(5, B)], B]);
    cluster.onSchedulerMessage(A, { kind: 'released', partition: 3, epoch: epoch(4) });
    expect(cluster.owners.of(3)).toBe(B);
    cluster.onSchedulerDown(B);
    expect([cluster.owners.of(3), cluster.owners.count]).toEqual([undefined, 0]);
    owns(B, epoch(5, B));
    expect([cluster.owners.of(3), queue.owners.length]).toEqual([B, 2]);
  });

  test('a full queue is refused at the door while its lane says so, and not a second longer', () => {
    publish(A, routing([routed('plain')]));
    const service = new InferService({
      gateway: A,
      catalog: cluster.catalog,
      queue,
      statistics,
      clock,
      loadOf: ({ name, version }) => cluster.loads.of(name, version),
    });
    const send = (): void => void service.infer(oneRow('plain'), () => undefined);
    send();
    const lane = { model: 'plain', version: '1', queued: 1e9, maxQueued: 1e9, expectedWaitUs: 1_500_000 };
    cluster.onSchedulerMessage(A, { kind: 'pressure', lanes: [lane] });
    expect(send).toThrow(expect.objectContaining({ code: 'RESOURCE_EXHAUSTED', reason: 'queue_full', retryAfterMs: 1500 }));
    clock.advance(900_000);
    expect(send).toThrow('Exceeds maximum queue size');
    clock.advance(500_000);
    send();
    cluster.onSchedulerMessage(A, { kind: 'pressure', lanes: [lane] });
    expect(send).toThrow('Exceeds maximum queue size');
    cluster.onSchedulerMessage(A, { kind: 'pressure', lanes: [{ ...lane, queued: 3 }] });
    send();
    expect(queue.enqueued).toHaveLength(3);
  });

  describe('model control', () => {
    test('goes to the placement owner and settles with its answer', async () => {
      publish(A, routing([]));
      const loaded = cluster.control.load('m', { config: '{}' });
      const unloaded = cluster.control.unload('n', { unloadDependents: true });
      expect(controls()).toEqual([
        [A, 1],
        [A, 2],
      ]);
      expect(told.at(-1)?.[1]).toEqual({
        kind: 'control',
        id: 2,
        operation: 'unload',
        model: 'n',
        parameters: {},
        unloadDependents: true,
      });
      cluster.onSchedulerMessage(A, { kind: 'control-result', id: 1, error: undefined });
      cluster.onSchedulerMessage(A, { kind: 'control-result', id: 2, error: new ServingError('INVALID_ARGUMENT', 'no') });
      await expect(loaded).resolves.toBeUndefined();
      await expect(unloaded).rejects.toThrow('no');
    });

    test('is told again to a new owner, once, and to one that came back', async () => {
      const loaded = cluster.control.load('m', {});
      expect(controls()).toEqual([]);
      publish(A, routing([]));
      publish(A, routing([], { generation: 2 }));
      expect(controls()).toEqual([[A, 1]]);
      cluster.onSchedulerDown(A);
      publish(B, routing([], { epoch: epoch(2, B) }));
      publish(A, routing([], { generation: 3 }));
      expect(controls()).toEqual([
        [A, 1],
        [B, 1],
      ]);
      cluster.onSchedulerDown(B);
      publish(B, routing([], { epoch: epoch(2, B) }));
      expect(controls()).toHaveLength(3);
      cluster.onSchedulerMessage(B, { kind: 'control-result', id: 1, error: undefined });
      cluster.onSchedulerMessage(B, { kind: 'control-result', id: 1, error: new ServingError('INTERNAL', 'late') });
      await loaded;
    });

    test('is told again to the same owner in its next term, which knows nothing of the last', async () => {
      publish(A, routing([]));
      const loaded = cluster.control.load('m', {});
      publish(A, routing([], { epoch: epoch(2, A) }));
      publish(A, routing([], { epoch: epoch(2, A), generation: 2 }));
      expect(controls()).toEqual([
        [A, 1],
        [A, 1],
      ]);
      cluster.onSchedulerMessage(A, { kind: 'control-result', id: 1, error: undefined });
      await loaded;
    });

    test('fails where nobody takes placement over', async () => {
      publish(A, routing([]));
      const loaded = cluster.control.load('m', {});
      cluster.onSchedulerDown(A);
      clock.advance(10_000_000);
      await expect(loaded).rejects.toMatchObject({ code: 'UNAVAILABLE', reason: 'no_placement_owner' });
    });
  });

  test('counters go to the placement owner each second when something was counted, and all of them to a new one', () => {
    const counted = (): unknown[] => told.flatMap(([to, m]) => (m.kind === 'statistics' ? [[to, m.versions[0]?.success.count]] : []));
    publish(A, routing([routed('m')]));
    statistics.forVersion('m', '1').recordSuccess(5);
    clock.advance(1_000_000);
    clock.advance(1_000_000);
    expect(counted()).toEqual([[A, 1]]);
    publish(B, routing([routed('m')], { epoch: epoch(2, B) }));
    expect(counted()).toEqual([
      [A, 1],
      [B, 1],
    ]);
    const { batching: _, ...other } = cluster.counters.find('m', '1')!;
    cluster.onSchedulerMessage(B, {
      kind: 'statistics',
      process: 'g2',
      versions: [{ ...other, batchSizes: [], success: { count: 4, ns: 4 } }],
    });
    expect(cluster.counters.find('m', '1')?.success).toEqual({ count: 5, ns: 9 });
  });

  test('closing leaves no timer', () => {
    publish(A, routing([routed('m')]));
    cluster.onSchedulerMessage(A, {
      kind: 'pressure',
      lanes: [{ model: 'm', version: '1', queued: 1, maxQueued: 2, expectedWaitUs: 1 }],
    });
    cluster.close();
    expect(clock.armedCount).toBe(0);
  });
});
