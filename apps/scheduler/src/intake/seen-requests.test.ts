/** The memory against requests that are handed over twice. */
import { expect, test } from '@jest/globals';
import { SeenRequests } from './seen-requests.js';

test('a number counts once for each gateway', () => {
  const seen = new SeenRequests();
  expect([seen.add({ gateway: 'a', number: 0 }), seen.add({ gateway: 'a', number: 0 })]).toEqual([true, false]);
  expect([seen.add({ gateway: 'b', number: 0 }), seen.add({ gateway: 'a', number: 0 })]).toEqual([true, false]);
});

test('remembers at least the last 16,000 numbers', () => {
  const seen = new SeenRequests();
  for (let number = 0; number < 20_000; number++) expect(seen.add({ gateway: 'a', number })).toBe(true);
  for (let number = 4000; number < 20_000; number++) expect(seen.add({ gateway: 'a', number })).toBe(false);
});

test('forgets the gateway seen first when there are too many', () => {
  const seen = new SeenRequests();
  for (let i = 0; i < 65; i++) seen.add({ gateway: `g${i}`, number: 1 });
  expect(seen.add({ gateway: 'g64', number: 1 })).toBe(false);
  expect(seen.add({ gateway: 'g0', number: 1 })).toBe(true);
});
