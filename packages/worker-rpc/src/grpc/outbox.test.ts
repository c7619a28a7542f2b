// What goes out when: one message a tick, nothing into a stream that is full, order kept.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { Liveness } from './liveness.js';
import { Outbox } from './outbox.js';

describe('Outbox', () => {
  let clock: FakeClock;
  let sent: number[][];
  let full: boolean;
  let drain: () => void;
  let outbox: Outbox;

  beforeEach(() => {
    clock = new FakeClock();
    sent = [];
    full = false;
    drain = () => undefined;
    outbox = new Outbox(
      {
        write(message) {
          sent.push([...message]);
          return !full;
        },
        onDrain: (then) => (drain = then),
      },
      clock,
    );
  });

  test('what is said in one tick is one message', () => {
    outbox.add(1);
    outbox.add(2, (to) => to.u8(7));
    expect(sent).toEqual([]);
    clock.advance(0);
    expect(sent).toEqual([[1, 2, 7]]);
    expect(clock.armedCount).toBe(0);
  });

  test('what can wait goes with the next that cannot, or after two milliseconds', () => {
    outbox.add(1, undefined, true);
    clock.advance(1000);
    expect(sent).toEqual([]);
    outbox.add(2);
    outbox.add(3, undefined, true);
    clock.advance(0);
    outbox.add(4, undefined, true);
    clock.advance(2000);
    expect(sent).toEqual([[1, 2, 3], [4]]);
  });

  test('a stream that is full gets nothing until it has drained, then everything at once', () => {
    full = true;
    outbox.add(1);
    clock.advance(0);
    outbox.add(2);
    clock.advance(0);
    outbox.add(3);
    clock.advance(0);
    expect(sent).toEqual([[1]]);
    full = false;
    drain();
    expect(sent).toEqual([[1], [2, 3]]);
  });

  test('a large one does not wait for the end of the tick; after closing nothing is sent', () => {
    outbox.add(1, (to) => to.bytes(new Uint8Array(2 * 1024 * 1024)));
    expect(sent.map((message) => message.length)).toEqual([2 * 1024 * 1024 + 5]);
    outbox.add(2);
    outbox.close();
    outbox.add(3);
    clock.advance(10_000);
    expect(sent).toHaveLength(1);
  });
});

test('Liveness: five silent looks are borne, the sixth ends it; one look after a long stop proves nothing', () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const liveness = new Liveness(
    clock,
    () => told.push('ping'),
    () => told.push('dead'),
  );
  clock.advance(2_500_000);
  expect(told).toEqual(Array(5).fill('ping'));
  liveness.heard();
  clock.advance(2_500_000);
  expect(told).toEqual(Array(10).fill('ping'));
  clock.advance(500_000);
  expect(told.at(-1)).toBe('dead');
  expect(clock.armedCount).toBe(0);
});
