// Requests that wait for a lane: how long, how many, and what becomes of them.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { Tensor } from '@paceline/tensor';
import { envelope, RecordedReplies } from '../batching/testing/fakes.js';
import { UnopenedLanes } from './unopened-lanes.js';

const LIMITS = { maxRequests: 3, maxBytes: 100, maxWaitUs: 10_000_000 };
const bytes = (count: number): Tensor[] => [{ name: 'x', datatype: 'UINT8', shape: [count], data: new Uint8Array(count) }];

describe('requests without a lane', () => {
  let clock: FakeClock;
  let replies: RecordedReplies;
  let unopened: UnopenedLanes;
  const refused = (): number[] => replies.errors().map(([number]) => number);

  beforeEach(() => {
    clock = new FakeClock();
    replies = new RecordedReplies();
    unopened = new UnopenedLanes(clock, replies, LIMITS);
  });

  test('are taken in order, with what is left of their timeouts', () => {
    unopened.add(envelope(1, { timeoutUs: 5_000_000 }));
    unopened.add(envelope(2));
    clock.advance(2_000_000);
    const taken = unopened.take('m', '1');
    expect(taken.map(({ ref, timeoutUs }) => [ref.number, timeoutUs])).toEqual([
      [1, 3_000_000],
      [2, 0],
    ]);
    expect([unopened.size, unopened.take('m', '1')]).toEqual([0, []]);
    clock.advance(20_000_000);
    expect(refused()).toEqual([]);
  });

  test('are refused at the end of the wait, or of their own timeout before it', () => {
    unopened.add(envelope(1));
    unopened.add(envelope(2, { timeoutUs: 1_000_000 }));
    clock.advance(1_000_000);
    expect(refused()).toEqual([2]);
    clock.advance(9_000_000);
    expect(replies.errors().map(([number, code]) => [number, code])).toEqual([
      [2, 'UNAVAILABLE'],
      [1, 'UNAVAILABLE'],
    ]);
    expect(clock.armedCount).toBe(0);
  });

  test('are refused at once where there is no room for their number or bytes, until some have left', () => {
    for (const number of [1, 2, 3, 4]) unopened.add(envelope(number));
    expect(refused()).toEqual([4]);
    expect(unopened.cancel({ gateway: 'g', number: 1 }, 'm', '1')).toBe(true);
    unopened.add(envelope(5, { inputs: bytes(101) }));
    expect(refused()).toEqual([4, 5]);
    unopened.add(envelope(6, { inputs: bytes(100) }));
    expect([refused(), unopened.size]).toEqual([[4, 5], 3]);
  });

  test('that were dropped are never answered', () => {
    unopened.add(envelope(1));
    unopened.abandon();
    clock.advance(20_000_000);
    expect([refused(), unopened.size, clock.armedCount]).toEqual([[], 0, 0]);
  });
});
