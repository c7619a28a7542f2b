/** What a lane does when batches end badly, when its model is reloaded, and when it is drained. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError } from '@paceline/protocol';
import { envelope, laneSpec } from './testing/fakes.js';
import { LaneRig } from './testing/lane-rig.js';

let { clock, worker, replies, statistics, lanes, intake, send, pending } = new LaneRig();

beforeEach(() => {
  ({ clock, worker, replies, statistics, lanes, intake, send, pending } = new LaneRig());
});

describe('batches that end badly', () => {
  test('failed: each member runs alone, only the one at fault gets the error', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1, 2);
    worker.complete(0, 'failed');
    clock.advance(0);
    worker.complete(1, 'ok');
    clock.advance(0);
    worker.complete(2, 'failed', { error: new ServingError('INVALID_ARGUMENT', 'index out of range') });
    clock.advance(0);
    worker.complete(3, 'ok');
    expect(worker.numbers()).toEqual([[0, 1, 2], [0], [1], [2]]);
    expect(replies.errors()).toEqual([[1, 'INVALID_ARGUMENT', 'index out of range']]);
    expect(statistics.forVersion('m', '1').executionsByReason.isolated).toBe(2);
    expect(pending()).toBe(0);
  });

  test('lost once: the members go back to the head of the queue, in order', () => {
    lanes.open(laneSpec({ maxBatchSize: 2 }));
    send(0, 1);
    send(2);
    worker.instance('g_0', 'down');
    worker.complete(0, 'lost');
    worker.instance('g_0', 'ready');
    clock.advance(0);
    expect(worker.numbers()).toEqual([
      [0, 1],
      [0, 1],
    ]);
    worker.complete(1, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0, 1], [0, 1], [2]]);
  });

  /** The batch ends with the death of its only instance, which comes back. */
  function lose(batch: number, more: { readonly started?: boolean; readonly error?: ServingError } = {}): void {
    worker.instance('g_0', 'down');
    worker.complete(batch, 'lost', more);
    worker.instance('g_0', 'ready');
    clock.advance(0);
  }

  const quarantined = (): boolean[] => worker.batches.map((batch) => batch.quarantine === true);

  test('lost twice: one by one in quarantine, where only the one that kills again gets the error; others go on', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1);
    lose(0);
    lose(1);
    send(2);
    expect(worker.numbers()).toEqual([[0, 1], [0, 1], [0], [2]]);
    worker.complete(2, 'lost');
    clock.advance(0);
    expect(replies.errors().map(([n, code]) => [n, code])).toEqual([[0, 'INTERNAL']]);
    worker.complete(3, 'ok');
    worker.complete(4, 'ok');
    expect(worker.numbers()).toEqual([[0, 1], [0, 1], [0], [2], [1]]);
    expect(quarantined()).toEqual([false, false, true, false, true]);
    expect(replies.errors()).toHaveLength(1);
    expect(pending()).toBe(0);
  });

  test('what its gateway has given up meanwhile does not run in quarantine, and holds nobody up there', () => {
    const sendFor = (...times: (number | undefined)[]): void => {
      times.forEach((remainingUs, number) => intake.onEnvelope(envelope(number, remainingUs === undefined ? {} : { remainingUs })));
      clock.advance(0);
    };
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    sendFor(undefined, 1000, 1000, undefined);
    lose(0);
    lose(1);
    clock.advance(1000);
    worker.complete(2, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0, 1, 2, 3], [0, 1, 2, 3], [0], [3]]);
    worker.complete(3, 'ok');
    expect([replies.frames.size, pending()]).toEqual([0, 0]);
  });

  test('what its gateway has given up does not run alone either', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    intake.onEnvelope(envelope(0));
    intake.onEnvelope(envelope(1, { remainingUs: 1000 }));
    clock.advance(0);
    worker.complete(0, 'failed');
    clock.advance(0);
    clock.advance(1000);
    worker.complete(1, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0, 1], [0]]);
    expect([replies.frames.size, pending()]).toEqual([0, 0]);
  });

  test('a request that is by itself when its instance dies a second time is not started again', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    lose(0);
    lose(1);
    expect(worker.numbers()).toEqual([[0], [0]]);
    expect(replies.errors().map(([n, code]) => [n, code])).toEqual([[0, 'INTERNAL']]);
    expect(pending()).toBe(0);
  });

  test('suspects that cannot be tried in quarantine are told why, after a few attempts', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1);
    lose(0);
    lose(1);
    const error = new ServingError('UNAVAILABLE', 'no quarantine');
    for (let batch = 2; worker.batches.length > batch; batch++) {
      worker.complete(batch, batch % 2 === 0 ? 'lost' : 'refused', { started: false, error });
      clock.advance(0);
    }
    expect(replies.errors()).toEqual([
      [0, 'UNAVAILABLE', 'no quarantine'],
      [1, 'UNAVAILABLE', 'no quarantine'],
    ]);
    expect(worker.batches).toHaveLength(12);
    expect(pending()).toBe(0);
  });

  test('a suspect whose client leaves is forgotten', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1);
    lose(0);
    lose(1);
    lanes.cancel({ gateway: 'g', number: 1 }, 'm', '1');
    worker.complete(2, 'ok');
    clock.advance(0);
    expect(worker.numbers()).toEqual([[0, 1], [0, 1], [0]]);
    expect(pending()).toBe(0);
  });

  test('a reload takes suspects over in their order', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1, 2);
    lose(0);
    lose(1);
    lanes.open(laneSpec({ maxBatchSize: 8, generation: 2 }));
    clock.advance(0);
    worker.complete(2, 'ok');
    worker.complete(3, 'ok');
    clock.advance(0);
    worker.complete(4, 'ok');
    expect(worker.numbers().slice(2)).toEqual([[0], [1], [2]]);
    expect(worker.batches.map((b) => b.generation)).toEqual([1, 1, 1, 2, 2]);
    expect(pending()).toBe(0);
  });

  test('lost before it began, or refused: again, without counting', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    for (let batch = 0; batch < 4; batch++) {
      if (batch % 2 === 0) lose(batch, { started: false });
      else {
        worker.complete(batch, 'refused', { started: false });
        worker.instance('g_0', 'ready');
        clock.advance(0);
      }
    }
    worker.complete(4, 'ok');
    expect(worker.numbers()).toEqual(Array.from({ length: 5 }, () => [0]));
    expect(replies.errors()).toEqual([]);
  });

  test('one whose instance dies each time before it begins ends up in quarantine', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    for (let batch = 0; batch < 5; batch++) lose(batch, { started: false });
    expect(quarantined()).toEqual([false, false, false, false, false, true]);
    worker.complete(5, 'lost', { started: false, error: new ServingError('UNAVAILABLE', 'it died') });
    clock.advance(0);
    expect(replies.errors()).toEqual([[0, 'UNAVAILABLE', 'it died']]);
  });

  test('an instance that refused is not asked again before it is reported ready', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    worker.complete(0, 'refused', { started: false });
    clock.advance(1000);
    expect(worker.batches).toHaveLength(1);
  });

  test('a second completion of a batch is ignored', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    worker.complete(0, 'ok');
    worker.complete(0, 'lost');
    clock.advance(0);
    expect(worker.batches).toHaveLength(1);
  });
});

describe('drain and reload', () => {
  test('drain finishes what it has, refuses what comes, leaves no timer', async () => {
    lanes.open(laneSpec({ maxBatchSize: 8, delayUs: 100_000 }));
    send(0, 1);
    const drained = lanes.drain('m', '1', 1);
    send(2);
    expect(worker.numbers()).toEqual([[0, 1]]);
    expect(replies.errors().map(([n, code]) => [n, code])).toEqual([[2, 'UNAVAILABLE']]);
    worker.complete(0, 'ok');
    clock.advance(0);
    await drained;
    expect(statistics.forVersion('m', '1').executionsByReason.drain).toBe(1);
    expect(lanes.find('m', '1')).toBeUndefined();
    expect(clock.armedCount).toBe(0);
  });

  test('an unknown generation drains at once', async () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    await lanes.drain('m', '1', 7);
    await lanes.drain('other', '1', 1);
    expect(lanes.find('m', '1')).toBeDefined();
  });

  test('a reload takes the queue over; the old generation only waits for its batches', async () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    send(1, 2);
    lanes.open(laneSpec({ maxBatchSize: 8, generation: 2, instances: ['g_0'] }));
    clock.advance(0);
    expect(worker.batches.map((b) => b.generation)).toEqual([1, 2]);
    expect(worker.numbers()).toEqual([[0], [1, 2]]);
    const drained = lanes.drain('m', '1', 1);
    worker.complete(0, 'ok');
    await drained;
    worker.complete(1, 'ok');
    expect(pending()).toBe(0);
    expect(replies.errors()).toEqual([]);
  });

  test('what the old generation loses runs on the new one', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0, 1);
    lanes.open(laneSpec({ maxBatchSize: 8, generation: 2 }));
    worker.complete(0, 'lost');
    clock.advance(0);
    expect(worker.batches.map((b) => [b.generation, b.members.length])).toEqual([
      [1, 2],
      [2, 2],
    ]);
  });

  test('a waiting request that does not fit the new generation is told so', () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    send(0);
    intake.onEnvelope(envelope(1, { rows: 8 }));
    lanes.open(laneSpec({ maxBatchSize: 4, generation: 2 }));
    clock.advance(0);
    expect(replies.errors()).toEqual([
      [1, 'UNAVAILABLE', "model 'm' was reloaded while the request waited, and inference request batch-size must be <= 4 for 'm'"],
    ]);
    expect(pending()).toBe(0);
  });

  test('drainAll ends every lane', async () => {
    lanes.open(laneSpec({ maxBatchSize: 8 }));
    lanes.open(laneSpec({ maxBatchSize: 8, model: 'n' }));
    send(0);
    const drained = lanes.drainAll();
    clock.advance(0);
    worker.complete(0, 'ok');
    await drained;
    expect([lanes.find('m', '1'), lanes.find('n', '1')]).toEqual([undefined, undefined]);
  });
});
