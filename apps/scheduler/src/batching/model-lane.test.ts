/** The lane around the batcher: what it sends to the worker and what it answers. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { laneSpec } from './testing/fakes.js';
import { LaneRig } from './testing/lane-rig.js';

let { clock, worker, replies, statistics, lanes, intake, send, pending } = new LaneRig();

beforeEach(() => {
  ({ clock, worker, replies, statistics, lanes, intake, send, pending } = new LaneRig());
});

describe('batches', () => {
  test('requests of one turn share a batch; those behind a busy instance the next one', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1, 2);
    send(3, 4);
    expect(worker.numbers()).toEqual([[0, 1, 2]]);
    expect(pending()).toBe(2);
    worker.complete(0, 'ok');
    // The batch may be held for others of its burst, but for no more than a tenth of the millisecond it takes.
    clock.advance(100);
    expect(worker.numbers()).toEqual([
      [0, 1, 2],
      [3, 4],
    ]);
    worker.complete(1, 'ok');
    expect(pending()).toBe(0);
    const s = statistics.forVersion('m', '1');
    expect([s.executionCount, s.inferenceCount, s.queue.count]).toEqual([2, 5, 5]);
    expect(s.batchSizes.get(3)?.computeInfer).toEqual({ count: 1, ns: 1_000_000 });
    expect(replies.errors()).toEqual([]);
  });

  test('the queue time of a member runs from its arrival to its dispatch', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    clock.advance(100);
    send(1);
    clock.advance(400);
    worker.complete(0, 'ok');
    clock.advance(0);
    expect(worker.batches[1]?.members[0]?.queueNs).toBe(400_000);
    worker.complete(1, 'ok');
    expect(statistics.forVersion('m', '1').queue.ns).toBe(400_000);
  });

  test('the queue delay is kept by a timer', () => {
    lanes.open(laneSpec({ maxBatchSize: 8, delayUs: 5000 }));
    send(0);
    clock.advance(4999);
    expect(worker.batches).toHaveLength(0);
    clock.advance(1);
    expect(worker.numbers()).toEqual([[0]]);
  });

  test('idle instances are used before any batch is staged, the least recently used first', () => {
    lanes.open(laneSpec({ maxBatchSize: 1, instances: ['g_0', 'g_1'] }));
    send(0);
    clock.advance(10);
    send(1);
    worker.complete(0, 'ok');
    worker.complete(1, 'ok');
    clock.advance(10);
    send(2);
    expect(worker.batches.map((b) => b.instance)).toEqual(['g_0', 'g_1', 'g_0']);
  });

  test('a full batch is staged behind a running one of known, short duration, and never a third', () => {
    lanes.open(laneSpec({ maxBatchSize: 2 }));
    send(0, 1);
    worker.complete(0, 'ok');
    send(2, 3);
    send(4, 5, 6, 7);
    expect(worker.numbers()).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
    expect(pending()).toBe(4);
    worker.complete(1, 'ok');
    expect(pending()).toBe(2);
    clock.advance(0);
    expect(worker.numbers()).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
      [6, 7],
    ]);
  });

  test('with preserve_ordering one instance works at a time', () => {
    lanes.open(laneSpec({ maxBatchSize: 1, instances: ['g_0', 'g_1'], preserveOrdering: true }));
    send(0, 1);
    expect(worker.numbers()).toEqual([[0]]);
    worker.complete(0, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0], [1]]);
  });
});

describe('intake', () => {
  test('a request that was handed over before is dropped', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 0);
    worker.complete(0, 'ok');
    send(0);
    expect(worker.numbers()).toEqual([[0]]);
  });

  test('no lane: UNAVAILABLE in the words of Triton', () => {
    send(0);
    expect(replies.errors()).toEqual([[0, 'UNAVAILABLE', "Request for unknown model: 'm' version 1 is not at ready state"]]);
  });

  test('over the queue size: RESOURCE_EXHAUSTED with a time to come back', () => {
    lanes.open(laneSpec({ maxBatchSize: 1, maxQueueSize: 2 }));
    send(0);
    send(1, 2, 3, 4);
    expect(replies.errors()).toEqual([3, 4].map((n) => [n, 'RESOURCE_EXHAUSTED', '[request id: <id_unknown>] Exceeds maximum queue size']));
    const [frame] = replies.frames.values();
    expect(frame?.ok === false && frame.error.retryAfterMs).toBeGreaterThan(0);
  });

  test('staged requests count against the queue size until they execute', () => {
    lanes.open(laneSpec({ maxBatchSize: 1, maxQueueSize: 2 }));
    send(0);
    worker.complete(0, 'ok');
    send(1);
    send(2, 3, 4);
    expect(worker.numbers()).toEqual([[0], [1], [2]]);
    expect(replies.errors().map(([n]) => n)).toEqual([4]);
    worker.complete(1, 'ok');
    send(5);
    expect(replies.errors().map(([n]) => n)).toEqual([4]);
  });
});

describe('cancel', () => {
  test('a waiting request never executes, a running one is left alone', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    send(1, 2);
    intake.onCancel({ gateway: 'g', number: 1 }, 'm', '1');
    intake.onCancel({ gateway: 'g', number: 0 }, 'm', '1');
    expect(pending()).toBe(1);
    worker.complete(0, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0], [2]]);
    expect(replies.errors()).toEqual([]);
  });

  test('a cancelled request of a batch that fails is neither tried again nor answered', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1);
    intake.onCancel({ gateway: 'g', number: 0 }, 'm', '1');
    worker.complete(0, 'failed');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0, 1], [1]]);
    worker.complete(1, 'ok');
    expect(replies.errors()).toEqual([]);
  });
});

describe('timeouts', () => {
  test('are due on time although every instance is busy', () => {
    lanes.open(laneSpec({ maxBatchSize: 8, timeoutUs: 3000 }));
    send(0);
    send(1);
    clock.advance(2999);
    expect(replies.errors()).toEqual([]);
    clock.advance(1);
    expect(replies.errors()).toEqual([
      [
        1,
        'DEADLINE_EXCEEDED',
        expect.stringMatching(/^Request timeout expired: .* within 3000 us, the limit set by default_timeout_microseconds/),
      ],
    ]);
    worker.complete(0, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0]]);
    expect(pending()).toBe(0);
  });

  test('a lane without a live instance keeps requests for the bound on queueing, then says why', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    worker.instance('g_0', 'down');
    send(0);
    clock.advance(59_999_999);
    expect(replies.errors()).toEqual([]);
    clock.advance(1);
    expect(replies.errors().map(([n, code]) => [n, code])).toEqual([[0, 'UNAVAILABLE']]);
  });

  test('requests that waited for an instance run when it is back', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    worker.instance('g_0', 'down');
    send(0, 1);
    worker.instance('g_0', 'ready');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0, 1]]);
  });
});
