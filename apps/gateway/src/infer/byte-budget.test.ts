import { expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { ByteBudget } from './byte-budget.js';

test('what does not fit is refused with the time in which room will have been made', () => {
  const clock = new FakeClock();
  const budget = new ByteBudget(1000, clock);
  expect(budget.reserve(600)).toBe(true);
  expect(budget.reserve(401)).toBe(false);
  expect(budget.usedBytes).toBe(600);
  expect(budget.refusal(401)).toMatchObject({ code: 'RESOURCE_EXHAUSTED', reason: 'too_many_buffered_bytes', retryAfterMs: 1000 });
  expect(budget.refusal(401).message).toMatch(/401 bytes.*600 bytes.*1000/);
  clock.advance(200_000);
  budget.release(100);
  // 100 bytes in 200 ms: another 400 take 800 ms.
  expect(budget.refusal(900).retryAfterMs).toBe(800);
  expect(budget.reserve(500)).toBe(true);
  expect(budget.usedBytes).toBe(1000);
});

test('what never will fit is too large, not too early', () => {
  const refusal = new ByteBudget(1000, new FakeClock()).refusal(1001);
  expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT', httpStatus: 413, retryAfterMs: undefined });
  expect(refusal.message).toContain('--max-buffered-bytes');
});
