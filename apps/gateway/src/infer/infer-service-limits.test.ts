/** The service's limits: time that clients set, queues and caps that are full, and the end. The test plays the lane. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { FakeClock } from '@paceline/clock/testing';
import type { StatisticsRegistry } from '@paceline/telemetry';
import { okFrame, type FakeQueue } from '../testing/fake-lane.js';
import { oneRow, SERVICE_MODELS, ServiceRig } from '../testing/service-rig.js';

let rig: ServiceRig;
let clock: FakeClock;
let queue: FakeQueue;
let statistics: StatisticsRegistry;
beforeEach(() => {
  rig = new ServiceRig();
  ({ clock, queue, statistics } = rig);
});

describe('time limits of clients', () => {
  const limited = (log: string[], tag: string, ms: number, model = 'plain'): { cancel(): void } =>
    rig.service.infer(oneRow(model, { id: tag }), (frame) => log.push(frame.ok ? tag : `${tag}: ${frame.error.message}`), {
      dueUs: clock.nowUs() + ms * 1000,
      limitUs: ms * 1000,
      setBy: 'the test',
    });

  test('a shorter one ends its request on time, out of order, and says whose it was', () => {
    const log: string[] = [];
    rig.send(log, 'server');
    limited(log, 'b', 200);
    limited(log, 'a', 100);
    clock.advance(99_999);
    expect(log).toEqual([]);
    clock.advance(1);
    expect(log).toEqual(["a: [request id: a] request to model 'plain' version 1 was not answered within 0.1 s, the limit set by the test"]);
    expect(queue.cancelled.map((ref) => ref.number)).toEqual([3]);
    clock.advance(100_000);
    expect(log).toHaveLength(2);
    clock.advance(60_000_000);
    expect(log.at(-1)).toBe('server:DEADLINE_EXCEEDED');
    expect(rig.service.unanswered).toBe(0);
  });

  test('a longer one than the server has does not lengthen it', () => {
    const log: string[] = [];
    limited(log, 'a', 120_000);
    clock.advance(60_000_000);
    expect(log).toEqual([expect.stringMatching(/within 60 s, the limit set by the server \(--request-timeout-ms\)$/)]);
  });

  test('in a model that keeps the order it does not wait for those before it', () => {
    const log: string[] = [];
    const first = rig.send(log, 'first', 'ordered');
    limited(log, 'second', 50, 'ordered');
    const third = rig.send(log, 'third', 'ordered');
    rig.service.onFrame(third.number, okFrame([]));
    clock.advance(50_000);
    expect(log).toEqual([expect.stringMatching(/^second: /)]);
    rig.service.onFrame(first.number, okFrame([]));
    expect(log.slice(1)).toEqual(['first', 'third']);
  });

  test('one that is over already is refused before the request is looked at', () => {
    expect(() => limited([], 'late', 0)).toThrow(expect.objectContaining({ code: 'DEADLINE_EXCEEDED', reason: 'request_timeout' }));
    expect(queue.enqueued).toHaveLength(0);
  });
});

describe('full, before anything is decoded', () => {
  const plain = SERVICE_MODELS[0]!;

  test('a queue that is full by what its lane counts', () => {
    expect(rig.service.precheck(plain)).toBeUndefined();
    const own = statistics.forVersion('plain', '1');
    own.pendingRequests = 4095;
    expect(rig.service.precheck(plain)).toBeUndefined();
    own.pendingRequests = 4096;
    expect(rig.service.precheck(plain)).toMatchObject({
      message: '[request id: <id_unknown>] Exceeds maximum queue size',
      reason: 'queue_full',
      retryAfterMs: 1000,
    });
    expect(own.refusedByReason.get('queue_full')).toBe(1);
  });

  test('a model with its share of unanswered requests, which leaves others alone', () => {
    rig.start({ maxUnansweredPerModel: 1 });
    const a = rig.send([], 'a');
    clock.advance(8_000);
    rig.service.onFrame(a.number, okFrame([]));
    rig.send([], 'b');
    expect(rig.service.precheck(plain)).toMatchObject({ reason: 'too_many_unanswered_of_model', retryAfterMs: 1 });
    expect(() => rig.send([], 'c')).toThrow("1 requests to model 'plain' are unanswered");
    expect(() => rig.send([], 'd', 'ordered')).not.toThrow();
  });

  test('a server that stops', () => {
    void rig.service.drain();
    expect(rig.service.precheck(plain)).toMatchObject({ code: 'UNAVAILABLE', reason: 'draining' });
  });
});

describe('caps and drain', () => {
  test('beyond either cap a request is refused with a time to come back, and room is made by answers', () => {
    rig.start({ maxUnanswered: 2, maxUnansweredBytes: 20 });
    const log: string[] = [];
    const a = rig.send(log, 'a');
    rig.send(log, 'b');
    const refusal = expect.objectContaining({
      code: 'RESOURCE_EXHAUSTED',
      reason: 'too_many_unanswered',
      retryAfterMs: expect.any(Number),
    });
    expect(() => rig.send(log, 'c')).toThrow(refusal);
    rig.service.onFrame(a.number, okFrame([]));
    rig.send(log, 'c');
    rig.start({ maxUnansweredBytes: 15 });
    rig.send(log, 'd');
    expect(() => rig.send(log, 'e')).toThrow(expect.objectContaining({ reason: 'too_many_unanswered_bytes' }));
  });

  test('drain refuses what is new and waits for what is not answered', async () => {
    const log: string[] = [];
    const a = rig.send(log, 'a');
    const b = rig.send(log, 'b');
    const drained = rig.service.drain().then(() => log.push('drained'));
    expect(() => rig.send(log, 'c')).toThrow(expect.objectContaining({ code: 'UNAVAILABLE', reason: 'draining' }));
    rig.service.onFrame(a.number, okFrame([]));
    await Promise.resolve();
    expect(log).toEqual(['a']);
    b.cancel();
    await drained;
    expect(log).toEqual(['a', 'drained']);
    expect(clock.armedCount).toBe(0);
    await rig.service.drain();
  });
});
