import { describe, expect, test } from '@jest/globals';
import { limitOfCall, limitOfHeader } from './time-limit.js';

describe('the header', () => {
  test('grants whole milliseconds from now', () => {
    expect(limitOfHeader(undefined, 5)).toBeUndefined();
    expect(limitOfHeader('1', 5)).toMatchObject({ dueUs: 1005, limitUs: 1000 });
    expect(limitOfHeader('86400000', 0)).toMatchObject({ limitUs: 86_400_000_000 });
  });

  test.each(['', '0', '-1', '1.5', '1e3', ' 5', '86400001', '999999999', '9'.repeat(500)])('%j is refused', (text) => {
    expect(() => limitOfHeader(text, 0)).toThrow(/^Unable to parse x-request-timeout-ms: expected a whole number .* got '/);
  });
});

describe('the deadline of a call', () => {
  test('comes a moment early, so that the error says what it was', () => {
    expect(limitOfCall(Infinity, 1000, 5)).toBeUndefined();
    expect(limitOfCall(new Date(1100), 1000, 5)).toMatchObject({ dueUs: 5 + 98_000, limitUs: 100_000 });
    expect(limitOfCall(900, 1000, 5)).toMatchObject({ dueUs: 5, limitUs: 0 });
  });
});
