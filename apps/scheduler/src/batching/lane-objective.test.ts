/** A lane with a latency objective: whom it answers, whom it refuses and with what, and what it shows of it. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { StatisticsRegistry, type ModelStatistics } from '@paceline/telemetry';
import { LaneIntake } from '../intake/lane-intake.js';
import { Lanes } from './lanes.js';
import { FakeWorker, RecordedReplies, envelope, laneSpec } from './testing/fakes.js';

const EXECUTION_US = 10_000;

let clock: FakeClock;
let worker: FakeWorker;
let replies: RecordedReplies;
let statistics: ModelStatistics;
let lanes: Lanes;
let intake: LaneIntake;
let next = 0;
let ended = 0;

beforeEach(() => {
  clock = new FakeClock();
  worker = new FakeWorker();
  replies = new RecordedReplies();
  const registry = new StatisticsRegistry();
  lanes = new Lanes({ clock, link: worker, replies, statistics: registry });
  worker.setListener(lanes);
  intake = new LaneIntake(lanes, replies);
  statistics = registry.forVersion('m', '1');
  next = 0;
  ended = 0;
});

const spec = (objectiveMs: string, generation = 1) =>
  laneSpec({ maxBatchSize: 1, generation, parameters: { latency_objective_ms: objectiveMs } });

function send(count = 1): void {
  for (let i = 0; i < count; i++) intake.onEnvelope(envelope(next++));
  clock.advance(0);
}

/** Runs the oldest batch that is with the worker to its end. */
function run(us = EXECUTION_US): void {
  clock.advance(us);
  worker.complete(ended++, 'ok', { computeUs: us });
  clock.advance(0);
}

function warm(): void {
  for (let i = 0; i < 5; i++) {
    send();
    run();
  }
}

const counts = () => statistics.batching?.objective;

describe('a latency objective', () => {
  test('who would come too late is refused at once, with a reason and a time to come back', () => {
    lanes.open(spec('45'));
    warm();
    send(20);
    const refused = replies.errors();
    expect(refused.length).toBeGreaterThan(10);
    for (const [, code, message] of refused) {
      expect(code).toBe('RESOURCE_EXHAUSTED');
      expect(message).toContain("model 'm' cannot answer within its latency objective of 45 ms");
    }
    const [frame] = replies.frames.values();
    expect(frame?.ok === false && [frame.error.reason, (frame.error.retryAfterMs ?? 0) > 0]).toEqual(['latency_objective', true]);
    while (ended < worker.batches.length) run();
    expect(counts()).toEqual({ objectiveMs: 45, attained: next - refused.length, missed: 0, shed: refused.length });
  });

  test('who waits in vain is refused at the last moment at which it could have started, although the instance is busy', () => {
    lanes.open(spec('45'));
    warm();
    send();
    clock.advance(1000);
    // The first of them is staged: it is as good as started.
    send(2);
    clock.advance(34_999);
    expect(replies.errors()).toEqual([]);
    clock.advance(1);
    expect(replies.errors()).toEqual([
      [7, 'DEADLINE_EXCEEDED', "[request id: <id_unknown>] model 'm' can no longer answer within its latency objective of 45 ms"],
    ]);
    worker.complete(5, 'ok', { computeUs: 36_000 });
    clock.advance(0);
    expect(statistics.pendingRequests).toBe(0);
    expect(counts()).toMatchObject({ attained: 6, missed: 0, shed: 1 });
  });

  test('an idle server takes every request, also when it was slow before', () => {
    lanes.open(spec('45'));
    warm();
    for (let i = 0; i < 5; i++) {
      send();
      run(100_000);
    }
    expect(replies.errors()).toEqual([]);
    expect(counts()).toMatchObject({ attained: 5, missed: 5, shed: 0 });
  });

  test('the profile is there to be read; a model without an objective has one as well, and counts nothing', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(2);
    run();
    expect(statistics.batching?.objective).toBeUndefined();
    expect(statistics.batching?.profile()).toEqual({
      sizes: [{ batchSize: 2, p50Us: EXECUTION_US, worstUs: EXECUTION_US, rowsPerSecond: 200 }],
      peakRows: undefined,
    });
  });

  test('a reload goes on counting while the objective is the same', () => {
    lanes.open(spec('45'));
    warm();
    lanes.open(spec('45', 2));
    expect(counts()).toMatchObject({ attained: 5 });
    lanes.open(spec('50', 3));
    expect(counts()).toMatchObject({ objectiveMs: 50, attained: 0 });
  });

  test('a batch-invariant model gets one request an execution', () => {
    lanes.open(laneSpec({ maxBatchSize: 8, instances: ['g_0', 'g_1'], parameters: { batch_invariant: 'true' } }));
    send(4);
    expect(worker.batches.map((batch) => batch.members.length)).toEqual([1, 1]);
  });
});
