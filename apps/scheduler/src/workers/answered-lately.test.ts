// What is remembered of the answers of each worker, and what is not any more.
import { expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { BatchMember } from '@paceline/worker-rpc';
import { AnsweredLately } from './answered-lately.js';

const member = (number: number, gateway = 'g'): BatchMember => ({
  ref: { gateway, number },
  rows: 1,
  inputs: [],
  outputs: [],
  queueNs: 0,
});

test('workers are remembered apart, gateways that alternate too', () => {
  const answered = new AnsweredLately(new FakeClock());
  answered.note('w1', [member(1), member(2, 'h'), { ...member(3), attempt: 2 }]);
  answered.note('w2', [member(4)]);
  expect([...answered.take('w1')]).toEqual([
    [
      'g',
      [
        { number: 1, attempt: 1 },
        { number: 3, attempt: 2 },
      ],
    ],
    ['h', [{ number: 2, attempt: 1 }]],
  ]);
  expect([answered.take('w1').size, answered.take('w3').size]).toEqual([0, 0]);
  expect(answered.take('w2').get('g')).toHaveLength(1);
});

test('the last 16,384 requests are remembered, and those of the last five seconds', () => {
  const clock = new FakeClock();
  const answered = new AnsweredLately(clock);
  const numbers = (): number[] => (answered.take('w').get('g') ?? []).map(({ number }) => number);
  for (let number = 0; number < 20_000; number += 8)
    answered.note(
      'w',
      Array.from({ length: 8 }, (_, i) => member(number + i)),
    );
  expect(numbers()).toEqual(Array.from({ length: 16_384 }, (_, i) => 20_000 - 16_384 + i));
  answered.note('w', [member(1)]);
  clock.advance(1);
  answered.note('w', [member(2)]);
  clock.advance(5_000_000);
  expect(numbers()).toEqual([2]);
});
