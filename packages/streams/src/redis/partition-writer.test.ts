// When an entry is made, from the answers of a Redis that the test gives by hand.
import { beforeEach, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { RedisArgument } from '@paceline/redis';
import { readEntry } from '@paceline/protocol/wire';
import { PartitionWriter } from './partition-writer.js';
import { requestOf } from './testing/redis-rig.js';
import type { Unanswered } from './unanswered.js';

let clock: FakeClock;
let entries: number[][];
let answers: (() => void)[];
let writer: PartitionWriter;

beforeEach(() => {
  clock = new FakeClock();
  entries = [];
  answers = [];
  const command = (_name: string, ...args: RedisArgument[]): Promise<unknown> => {
    entries.push(readEntry(args.at(-1) as Buffer).map(({ ref }) => ref.number));
    return new Promise((resolve) => answers.push(() => resolve('1-0')));
  };
  const nothing = (): void => undefined;
  writer = new PartitionWriter('{p0}:in', { clock, redis: { command }, onWritten: nothing, onFailed: nothing, onDoubt: nothing });
});

function add(first: number, last: number): void {
  for (let number = first; number <= last; number++) writer.add(unanswered(number));
}

function unanswered(number: number): Unanswered {
  return {
    envelope: requestOf(number),
    partition: 0,
    heldBytes: undefined,
    sinceUs: clock.nowUs(),
    stage: 'waiting',
    handedOver: false,
    done: false,
    cancelWhenWritten: false,
    againWhenWritten: false,
    startedAttempts: 0,
  };
}

/** Redis confirms the oldest entry, and a turn of the event loop passes. */
async function confirm(): Promise<void> {
  answers.shift()?.();
  await Promise.resolve();
  await Promise.resolve();
  clock.advance(0);
}

test('few requests wait for the entry that is under way, and are the next one', async () => {
  add(1, 1);
  clock.advance(0);
  add(2, 2);
  clock.advance(0);
  add(3, 3);
  clock.advance(0);
  expect(entries).toEqual([[1]]);
  await confirm();
  expect(entries).toEqual([[1], [2, 3]]);
});

test('32 and more do not wait; what is left of a full entry waits for all that are under way', async () => {
  add(1, 1);
  clock.advance(0);
  add(2, 33);
  clock.advance(0);
  expect(entries.map((entry) => entry.length)).toEqual([1, 32]);
  add(34, 300);
  clock.advance(0);
  expect(entries.map((entry) => entry.length)).toEqual([1, 32, 256]);
  await confirm();
  await confirm();
  expect(entries).toHaveLength(3);
  await confirm();
  expect(entries.map((entry) => entry.length)).toEqual([1, 32, 256, 11]);
});
