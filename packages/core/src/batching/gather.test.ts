/** Holding an under-full batch for the rest of a burst: when it pays, when it must not happen. */
import { describe, expect, test } from '@jest/globals';
import { Arrivals } from './arrivals.js';
import { DynamicBatcher } from './dynamic-batcher.js';
import { holdUntil } from './gather.js';
import { BatchProfile } from './profile.js';
import { policy } from './testing/policies.js';
import { simulate, type SimArrival } from './testing/simulate.js';

/** 2 ms for the first row and 50 us for each further one: like a model that reads 50 MB of weights a pass. */
const heavyUs = (rows: number): number => 2000 + 50 * rows;

function learned(costUs: (rows: number) => number): BatchProfile {
  const profile = new BatchProfile(64);
  for (const rows of [1, 2, 4, 8, 16, 32, 64]) for (let i = 0; i < 4; i++) profile.record(rows, costUs(rows));
  return profile;
}

function burst(count: number, gapUs: number): Arrivals {
  const arrivals = new Arrivals();
  for (let i = 0; i < count; i++) arrivals.record(i * gapUs);
  return arrivals;
}

describe('holdUntil', () => {
  test('holds a small batch in a burst, for at most a tenth of its execution', () => {
    const untilUs = holdUntil(5, 1, learned(heavyUs), burst(5, 10), 40, 40);
    expect(untilUs).toBeGreaterThan(40);
    expect(untilUs).toBeLessThanOrEqual(40 + 0.1 * heavyUs(5));
  });

  test('does not hold a lone request', () => {
    expect(holdUntil(1, 1, learned(heavyUs), burst(1, 0), 0, 0)).toBe(-1);
  });

  test('does not hold when the next request is farther away than the hold may last', () => {
    expect(holdUntil(5, 1, learned(heavyUs), burst(5, 400), 1600, 1600)).toBe(-1);
  });

  test('does not hold when the burst is over', () => {
    expect(holdUntil(5, 1, learned(heavyUs), burst(5, 10), 40, 40 + 150)).toBe(-1);
  });

  test('holds what is left over when many clients were just answered and are about to return', () => {
    const arrivals = burst(64, 5);
    arrivals.record(5000);
    const profile = learned(heavyUs);
    expect(holdUntil(1, 1, profile, arrivals, 8000, 8000)).toBe(-1);
    arrivals.answered(63, 8000);
    expect(holdUntil(1, 1, profile, arrivals, 8000, 8000)).toBeGreaterThan(8000);
  });

  test('does not remember a burst for long', () => {
    const arrivals = burst(64, 5);
    arrivals.record(1_000_000);
    expect(holdUntil(1, 1, learned(heavyUs), arrivals, 1_000_000, 1_000_000)).toBe(-1);
  });

  test('does not hold a model whose rows each cost the same', () => {
    expect(
      holdUntil(
        5,
        1,
        learned((rows) => 2000 * rows),
        burst(5, 60),
        240,
        240,
      ),
    ).toBe(-1);
  });

  test('does not hold a model that was never measured, nor a quick one', () => {
    expect(holdUntil(5, 1, new BatchProfile(64), burst(5, 10), 40, 40)).toBe(-1);
    expect(
      holdUntil(
        5,
        1,
        learned((rows) => 50 + rows),
        burst(5, 10),
        40,
        40,
      ),
    ).toBe(-1);
  });
});

describe('closed loop', () => {
  /** 64 clients that send again between 20 us and 1 ms after their answer, one after the other. */
  function run(hold: boolean): { batches: number; endUs: number } {
    const clients = 64;
    const rounds = 40;
    const first: SimArrival[] = Array.from({ length: clients }, (_, i) => ({ atUs: i * 15 }));
    const total = clients * rounds;
    let sent = clients;
    let backAt = 0;
    let place = 0;
    const batcher = new DynamicBatcher(policy({ maxRows: 64 }));
    const profile = batcher.profile('');
    if (hold) for (const rows of [1, 2, 4, 8, 16, 32, 64]) for (let i = 0; i < 4; i++) profile.record(rows, heavyUs(rows));
    else profile.record = () => undefined;
    const log = simulate({
      policy: batcher.policy,
      batcher,
      instances: 1,
      arrivals: first,
      executionUs: heavyUs,
      onCompleted: (_, nowUs) => {
        if (sent >= total) return undefined;
        sent += 1;
        place = nowUs === backAt ? place + 1 : 0;
        backAt = nowUs;
        return { atUs: nowUs + 20 + place * 5 };
      },
    });
    return { batches: log.batches.length, endUs: log.endUs };
  }

  test('gathering makes fewer, larger batches and ends sooner', () => {
    const held = run(true);
    const eager = run(false);
    expect(held.batches).toBeLessThan(eager.batches);
    expect(held.endUs).toBeLessThan(eager.endUs);
  });
});
