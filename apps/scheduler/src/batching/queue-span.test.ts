/** The span of a request in its lane: one each time it leaves, in a batch or with an error. */
import { beforeEach, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { StatisticsRegistry } from '@paceline/telemetry';
import { RecordedTracing } from '@paceline/telemetry/testing';
import { Lanes } from './lanes.js';
import { envelope, FakeWorker, laneSpec, RecordedReplies } from './testing/fakes.js';

let clock: FakeClock;
let worker: FakeWorker;
let tracing: RecordedTracing;
let lanes: Lanes;

beforeEach(() => {
  clock = new FakeClock();
  worker = new FakeWorker();
  tracing = new RecordedTracing();
  const ports = { clock, link: worker, replies: new RecordedReplies(), statistics: new StatisticsRegistry(), queueTimeoutUs: 1_000_000 };
  lanes = new Lanes({ ...ports, tracing });
  worker.setListener(lanes);
});

const send = (number: number, traceParent?: string): void =>
  lanes.find('m', '1')?.enqueue({ ...envelope(number), ...(traceParent !== undefined && { traceParent }) });
const parents = (batch: number) => worker.batches[batch]?.members.map(({ traceParent }) => traceParent);

test('from arrival to dispatch, and the worker gets its context; others have none', () => {
  lanes.open(laneSpec({ maxBatchSize: 4 }));
  clock.advance(100);
  send(0, 'client');
  send(1);
  clock.advance(0);
  expect(parents(0)).toEqual(['span-1', undefined]);
  expect(tracing.summary).toEqual(['paceline.queue under client: ok']);
  expect(tracing.spans[0]).toMatchObject({
    startUs: 100,
    end: { endUs: 100 },
    attributes: { 'paceline.model': 'm', 'paceline.attempt': 1, 'paceline.losses': 0, 'paceline.batch_requests': 2 },
  });
});

test('what is run again has another', () => {
  lanes.open(laneSpec({ maxBatchSize: 1 }));
  send(0, 'client');
  clock.advance(0);
  worker.instance('g_0', 'down');
  worker.complete(0, 'lost');
  worker.instance('g_0', 'ready');
  clock.advance(0);
  expect(tracing.summary).toEqual(['paceline.queue under client: ok', 'paceline.queue under client: ok']);
  expect(tracing.spans.map(({ attributes }) => attributes['paceline.losses'])).toEqual([0, 1]);
  expect([parents(0), parents(1)]).toEqual([['span-1'], ['span-2']]);
});

test('what waits for too long ends with the reason', () => {
  lanes.open(laneSpec({ maxBatchSize: 1 }));
  worker.instance('g_0', 'down');
  send(0, 'client');
  clock.advance(2_000_000);
  expect(tracing.summary).toEqual(['paceline.queue under client: no_healthy_instance']);
  expect(tracing.spans[0]?.end?.endUs).toBeGreaterThanOrEqual(1_000_000);
});
