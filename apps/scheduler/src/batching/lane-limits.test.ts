/** Limits of a lane under many requests at once: queue sizes, timeouts, cancels, and times to come back. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { StatisticsRegistry, type ModelStatistics } from '@paceline/telemetry';
import { LaneIntake } from '../intake/lane-intake.js';
import { Lanes } from './lanes.js';
import { FakeWorker, RecordedReplies, envelope, laneSpec, type LaneSpecOptions } from './testing/fakes.js';

const SEED = Number(process.env['SIM_SEED'] ?? 20261130);

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

let clock: FakeClock;
let worker: FakeWorker;
let replies: RecordedReplies;
let statistics: ModelStatistics;
let intake: LaneIntake;

function open(options: LaneSpecOptions): void {
  lanes.open(laneSpec(options));
}

let lanes: Lanes;
beforeEach(() => {
  clock = new FakeClock();
  worker = new FakeWorker();
  replies = new RecordedReplies();
  const registry = new StatisticsRegistry();
  lanes = new Lanes({ clock, link: worker, replies, statistics: registry });
  worker.setListener(lanes);
  intake = new LaneIntake(lanes, replies);
  statistics = registry.forVersion('m', '1');
});

/** Executes batches as they come, one after the other, each for `executionUs` of virtual time. */
class Instance {
  #next = 0;
  #endUs = Infinity;

  constructor(private readonly executionUs: (rows: number) => number) {}

  get served(): number {
    return worker.batches.slice(0, this.#next).reduce((sum, batch) => sum + batch.members.length, 0);
  }

  /** Lets time pass, and batches end on the way. */
  advance(us: number): void {
    const untilUs = clock.nowUs() + us;
    for (;;) {
      clock.advance(0);
      const batch = worker.batches[this.#next];
      if (batch && this.#endUs === Infinity) this.#endUs = clock.nowUs() + this.executionUs(batch.rows);
      const stepUs = Math.min(untilUs, this.#endUs) - clock.nowUs();
      if (this.#endUs === Infinity) {
        // A batch may be released on the way: look often enough to start it in time.
        if (clock.nowUs() >= untilUs) return;
        clock.advance(Math.min(50, stepUs));
        continue;
      }
      clock.advance(stepUs);
      if (clock.nowUs() < this.#endUs) return;
      this.#endUs = Infinity;
      this.#next += 1;
      worker.complete(this.#next - 1, 'ok', { computeUs: this.executionUs(batch?.rows ?? 1) });
    }
  }
}

describe('queue size', () => {
  test.each([
    [1, 1],
    [5, 3],
    [64, 200],
  ])('%i: of as many and one more and %i further ones at once, exactly the further ones are refused', (size, further) => {
    open({ maxBatchSize: 1, maxQueueSize: size });
    intake.onEnvelope(envelope(0));
    clock.advance(0);
    for (let n = 1; n <= size + further; n++) intake.onEnvelope(envelope(n));
    clock.advance(0);
    expect(replies.errors().map(([n, code]) => [n, code])).toEqual(
      Array.from({ length: further }, (_, i) => [size + 1 + i, 'RESOURCE_EXHAUSTED']),
    );
  });

  test('what arrives at once while an instance is idle fills the instance first, then the queue', () => {
    open({ maxBatchSize: 1, maxQueueSize: 3 });
    for (let n = 0; n < 6; n++) intake.onEnvelope(envelope(n));
    clock.advance(0);
    expect(replies.errors().map(([n, code]) => [n, code])).toEqual([
      [4, 'RESOURCE_EXHAUSTED'],
      [5, 'RESOURCE_EXHAUSTED'],
    ]);
    expect(worker.numbers()).toEqual([[0]]);
  });

  test('the time to come back is that of the queue at the rate of the last seconds', () => {
    open({ maxBatchSize: 1, maxQueueSize: 20 });
    const instance = new Instance(() => 50_000);
    for (let n = 0; n < 20; n++) intake.onEnvelope(envelope(n));
    instance.advance(600_000);
    for (let n = 20; n < 60; n++) intake.onEnvelope(envelope(n));
    const waits = [...replies.frames.values()].map((frame) => (frame.ok ? 0 : (frame.error.retryAfterMs ?? 0)));
    expect(waits.length).toBeGreaterThan(10);
    // 19 or 20 requests wait, and one is served every 50 ms.
    for (const ms of waits) expect(Math.abs(ms - 1000)).toBeLessThanOrEqual(100);
  });
});

describe('timeouts', () => {
  test('are due on time while the only instance is busy for a long time, and the request never runs', () => {
    open({ maxBatchSize: 8, timeoutUs: 10_000_000 });
    intake.onEnvelope(envelope(0));
    clock.advance(0);
    clock.advance(1_000_000);
    intake.onEnvelope(envelope(1));
    clock.advance(9_999_999);
    expect(replies.errors()).toEqual([]);
    clock.advance(1);
    expect(replies.errors().map(([n, code]) => [n, code])).toEqual([[1, 'DEADLINE_EXCEEDED']]);
    clock.advance(80_000_000);
    worker.complete(0, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0]]);
  });

  test(`left on for half an hour at 80 %% of capacity they cost no throughput and leave nothing behind, SIM_SEED=${SEED}`, () => {
    open({ maxBatchSize: 4, timeoutUs: 60_000 });
    const random = seeded(SEED);
    const instance = new Instance((rows) => (18_000 + 500 * rows) * (0.8 + 0.4 * random()));
    const served: number[] = [];
    let number = 0;
    for (let minute = 0; minute < 30; minute++) {
      const before = instance.served;
      // A sixtieth of each minute, so that the test takes seconds; bursts are what timeouts are for.
      for (let nowUs = 0; nowUs < 1_000_000;) {
        const gapUs = (-Math.log(1 - random()) / 160) * 1e6;
        instance.advance(gapUs);
        nowUs += gapUs;
        intake.onEnvelope(envelope(number++));
      }
      served.push(instance.served - before);
    }
    instance.advance(1_000_000);
    const mean = (from: number, to: number): number => served.slice(from, to).reduce((sum, n) => sum + n, 0) / (to - from);
    expect(mean(20, 30)).toBeGreaterThan(0.95 * mean(0, 10));
    expect(instance.served + replies.errors().length).toBe(number);
    expect(statistics.pendingRequests).toBe(0);
    intake.onEnvelope(envelope(number));
    instance.advance(100_000);
    expect(instance.served + replies.errors().length).toBe(number + 1);
    expect(clock.armedCount).toBe(0);
  });
});

describe('cancels', () => {
  test(`of 30 %% of 10,000 requests at random moments leave nobody stuck and nobody else unserved, SIM_SEED=${SEED}`, () => {
    open({ maxBatchSize: 8, maxQueueSize: 500, timeoutUs: 200_000 });
    const random = seeded(SEED);
    const instance = new Instance((rows) => 1000 + 400 * rows);
    const cancelled = new Set<number>();
    const cancels: { readonly atUs: number; readonly number: number }[] = [];
    for (let number = 0; number < 10_000; number++) {
      intake.onEnvelope(envelope(number));
      if (random() < 0.3) cancels.push({ atUs: clock.nowUs() + random() * 6000, number });
      if (random() < 0.6) instance.advance(random() * 1200);
      for (let i = cancels.length - 1; i >= 0; i--) {
        const cancel = cancels[i];
        if (!cancel || cancel.atUs > clock.nowUs()) continue;
        cancels.splice(i, 1);
        cancelled.add(cancel.number);
        intake.onCancel({ gateway: 'g', number: cancel.number }, 'm', '1');
      }
    }
    instance.advance(2_000_000);
    const ran = new Set(worker.numbers().flat());
    expect(ran.size).toBe(worker.numbers().flat().length);
    for (let number = 0; number < 10_000; number++) {
      const ends = Number(ran.has(number)) + Number(replies.frames.has(number));
      if (cancelled.has(number)) expect(ends).toBeLessThanOrEqual(1);
      else expect([number, ends]).toEqual([number, 1]);
    }
    expect(cancelled.size).toBeGreaterThan(2500);
    expect([...cancelled].filter((number) => !ran.has(number)).length).toBeGreaterThan(500);
    expect(statistics.pendingRequests).toBe(0);
    expect(clock.armedCount).toBe(0);
  });
});
