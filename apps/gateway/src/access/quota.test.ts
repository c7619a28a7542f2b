import { describe, expect, it } from '@jest/globals';
import { matchesGlob } from './glob.js';
import { Quota } from './quota.js';

describe('a glob over model names', () => {
  it.each([
    ['*', 'anything', true],
    ['*', '', true],
    ['digits', 'digits', true],
    ['digits', 'digits2', false],
    ['digits*', 'digits', true],
    ['digits*', 'my_digits', false],
    ['*_v?', 'ocr_v1', true],
    ['*_v?', 'ocr_v12', false],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['a.c', 'abc', false],
    ['?', '', false],
  ])('%s takes %s: %s', (glob, name, expected) => {
    expect(matchesGlob(glob, name)).toBe(expected);
  });

  it('needs no exponential time', () => {
    expect(matchesGlob('*a'.repeat(100) + 'b', 'a'.repeat(10_000))).toBe(false);
  });
});

describe('a quota', () => {
  it('grants one second of requests at once, then as they grow again', () => {
    const quota = new Quota({ requestsPerSecond: 5 });
    for (let i = 0; i < 5; i++) expect(quota.takeRequest(0)).toEqual({ kind: 'take' });
    expect(quota.takeRequest(0)).toEqual({ kind: 'refuse', reason: 'requests_per_second', limit: 5, retryAfterMs: 200 });
    expect(quota.takeRequest(199_000).kind).toBe('refuse');
    expect(quota.takeRequest(200_000).kind).toBe('take');
  });

  it('does not gather more than a second, however long nobody asks', () => {
    const quota = new Quota({ requestsPerSecond: 2 });
    expect([0, 1, 2].map(() => quota.takeRequest(1e12).kind)).toEqual(['take', 'take', 'refuse']);
  });

  it('keeps the rate over time, whatever the pace of the caller', () => {
    const quota = new Quota({ requestsPerSecond: 10 });
    let taken = 0;
    for (let nowUs = 0; nowUs <= 10e6; nowUs += 7_000) if (quota.takeRequest(nowUs).kind === 'take') taken += 1;
    expect(taken).toBeGreaterThanOrEqual(109);
    expect(taken).toBeLessThanOrEqual(110);
  });

  it('lets a rate below one a second through', () => {
    const quota = new Quota({ requestsPerSecond: 0.5 });
    expect(quota.takeRequest(0).kind).toBe('take');
    expect(quota.takeRequest(0)).toMatchObject({ retryAfterMs: 2000 });
    expect(quota.takeRequest(2e6).kind).toBe('take');
  });

  it('takes a request of more rows than a second has, once, and makes the next ones wait for it', () => {
    const quota = new Quota({ rowsPerSecond: 10 });
    expect(quota.takeRows(30, 0).kind).toBe('take');
    expect(quota.takeRows(1, 0)).toMatchObject({ kind: 'refuse', reason: 'rows_per_second', retryAfterMs: 2100 });
    expect(quota.takeRows(1, 2.1e6).kind).toBe('take');
  });

  it('counts what is in flight, and gives back rows that never ran', () => {
    const quota = new Quota({ rowsPerSecond: 4, inFlight: 1 });
    expect(quota.takeRows(4, 0).kind).toBe('take');
    expect(quota.takeRows(1, 0)).toMatchObject({ reason: 'in_flight', limit: 1 });
    quota.giveBack(4);
    expect(quota.inFlight).toBe(0);
    expect(quota.takeRows(4, 0).kind).toBe('take');
  });

  it('a refusal takes nothing', () => {
    const quota = new Quota({ rowsPerSecond: 4, inFlight: 5 });
    quota.takeRows(4, 0);
    expect(quota.takeRows(4, 0).kind).toBe('refuse');
    expect(quota.inFlight).toBe(1);
    expect(quota.takeRows(4, 1e6).kind).toBe('take');
  });
});
