// What a gateway does when it hears that a worker was lost which had executed requests: only the queue knows who still waits.
import { expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { ServingError } from '@paceline/protocol';
import { createLogger, SILENT, StatisticsRegistry } from '@paceline/telemetry';
import { FakeQueue } from '../testing/fake-lane.js';
import { ClusterGateway, type HandoverQueue } from './cluster-gateway.js';

class FakeHandover extends FakeQueue implements HandoverQueue {
  readonly lost: unknown[] = [];

  onOwner(): void {}

  onLost(number: number, attempt: number, started: boolean, { code, reason, retryAfterMs }: ServingError): void {
    this.lost.push([number, attempt, started, code, reason, retryAfterMs]);
  }

  tensorsOf(): undefined {
    return undefined;
  }
}

test('each request is lost to the queue as an execution that began', () => {
  const queue = new FakeHandover();
  const cluster = new ClusterGateway({
    clock: new FakeClock(),
    logger: createLogger(SILENT),
    statistics: new StatisticsRegistry(),
    ownerLimitMs: 10_000,
    tell: () => undefined,
  });
  cluster.attach(queue, () => undefined);
  const requests = [
    { number: 4, attempt: 1 },
    { number: 9, attempt: 2 },
  ];
  cluster.onSchedulerMessage('a'.repeat(16), { kind: 'lost', requests });
  expect(queue.lost).toEqual([
    [4, 1, true, 'UNAVAILABLE', 'reply_lost', 1000],
    [9, 2, true, 'UNAVAILABLE', 'reply_lost', 1000],
  ]);
  cluster.close();
});
