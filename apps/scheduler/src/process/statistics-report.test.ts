// What gateways are told of this scheduler's counters, and when.
import { expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { SchedulerMessage } from '@paceline/protocol';
import { StatisticsRegistry } from '@paceline/telemetry';
import type { ModelAnnouncement } from '@paceline/worker-rpc';
import { loadSpec } from '../partitions/testing/owner-rig.js';
import { WorkerFleet } from '../placement/cluster/worker-fleet.js';
import { StatisticsReport } from './statistics-report.js';

test('counters and memory are told each second when they changed, and whole to a gateway that is new', () => {
  const [clock, statistics, fleet] = [new FakeClock(), new StatisticsRegistry(), new WorkerFleet()];
  const told: [string, SchedulerMessage][] = [];
  const report = new StatisticsReport({
    clock,
    statistics,
    memory: () => fleet.memory(),
    self: 's1',
    broadcast: (message) => void told.push(['all', message]),
    tell: (gateway, message) => void told.push([gateway, message]),
  });
  const news = (): unknown[] =>
    told.splice(0).flatMap(([to, message]) => {
      if (message.kind !== 'statistics') throw new Error(message.kind);
      return message.versions.map((v) => [to, message.process, v.model, v.executionCount, v.memoryBytes]);
    });
  const announce = (worker: string, generation: number, memoryBytes: number): void => {
    const names = { fingerprint: 'f', instances: ['g_0'], ready: ['g_0'] };
    const load: ModelAnnouncement = { spec: loadSpec(generation), ...names, state: 'active', memoryBytes };
    fleet.onModel(worker, load);
  };
  report.start();
  clock.advance(1_000_000);
  expect(news()).toEqual([]);
  for (const worker of ['w1', 'w2']) fleet.onUp({ worker, devices: [], models: [], draining: false, epochs: [] });
  announce('w1', 1, 100);
  announce('w2', 1, 0);
  clock.advance(1_000_000);
  announce('w2', 1, 200);
  announce('w2', 2, 30);
  statistics.forVersion('m', '1').recordExecution({ rows: 1, reason: 'full', computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 }, 5);
  clock.advance(1_000_000);
  clock.advance(1_000_000);
  expect(news()).toEqual([
    ['all', 's1', 'm', 0, 100],
    ['all', 's1', 'm', 1, 330],
  ]);
  report.onGatewayUp('g2');
  fleet.onDown('w2', 'gone');
  clock.advance(1_000_000);
  report.stop();
  clock.advance(5_000_000);
  expect(news()).toEqual([
    ['g2', 's1', 'm', 1, 330],
    ['all', 's1', 'm', 1, 100],
  ]);
});
