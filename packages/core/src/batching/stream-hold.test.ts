/** Holding under-full batches for a steady stream: what it saves, what it costs, and for whom it is not done. */
import { describe, expect, test } from '@jest/globals';
import { BatchProfile } from './profile.js';
import { holdForStream, holdLimitUs, WORTH } from './stream-hold.js';
import { Stream } from './stream.js';
import { EARLY_PEAK_CNN, MEMORY_BOUND_MLP } from './testing/costs.js';
import { poissonArrivalsUs, quantileUs, runOpenLoop } from './testing/open-loop.js';
import { policy, seeded } from './testing/policies.js';
import { simulate } from './testing/simulate.js';

function learned(us: (rows: number) => number): BatchProfile {
  const profile = new BatchProfile(64);
  for (const rows of [1, 2, 4, 8, 12, 16, 24, 32, 64]) for (let i = 0; i < 4; i++) profile.record(rows, us(rows));
  return profile;
}

/** A request each 400 us until `untilUs`, with `most` in the lane at once. */
function stream(untilUs: number, most: number): Stream {
  const s = new Stream();
  for (let us = 0; us <= untilUs; us += 400) s.record(us);
  s.answered(most, 0);
  return s;
}

describe('holdForStream', () => {
  const hold = (us: (rows: number) => number, s: Stream, rows: number, nowUs: number): number => {
    const profile = learned(us);
    return holdForStream({ rows, requests: rows, fullRows: 64 }, profile, s, holdLimitUs(rows, profile, 40_000), WORTH, nowUs);
  };

  test('holds for a part of the execution while more rows save processor time', () => {
    const untilUs = hold(MEMORY_BOUND_MLP.us, stream(40_000, 40), 12, 40_000);
    expect(untilUs).toBeGreaterThan(41_000);
    expect(untilUs).toBeLessThanOrEqual(40_000 + 0.4 * MEMORY_BOUND_MLP.us(12) + 1);
  });

  test('not when everybody who was ever there waits already', () => {
    expect(hold(MEMORY_BOUND_MLP.us, stream(40_000, 12), 12, 40_000)).toBe(-1);
  });

  test('not when the stream fell silent', () => {
    expect(hold(MEMORY_BOUND_MLP.us, stream(38_000, 40), 12, 40_000)).toBe(-1);
  });

  test('not for a model whose rows each cost the same, nor for a quick one', () => {
    expect(hold(EARLY_PEAK_CNN.us, stream(40_000, 40), 12, 40_000)).toBe(-1);
    expect(hold((rows) => 200 + rows, stream(40_000, 40), 12, 40_000)).toBe(-1);
  });

  test('not for a lone request at a low rate', () => {
    const s = new Stream();
    for (let us = 0; us <= 40_000; us += 10_000) s.record(us);
    s.answered(4, 0);
    expect(hold(MEMORY_BOUND_MLP.us, s, 1, 40_000)).toBe(-1);
  });
});

describe('an open loop at half of what 64 connections reach', () => {
  const RATE = 2450;
  const COUNT = 40_000;

  test.each([
    [0, 1],
    [0, 2],
    [0.1, 3],
    [0.2, 4],
  ])('takes at most 0.75 of the processor of eager batching, p99 under 6 times a single inference (jitter %d, seed %i)', (jitter, seed) => {
    const run = (eager: boolean) => {
      const random = seeded(seed);
      return runOpenLoop({
        policy: policy({ maxRows: 64 }),
        eager,
        arrivalsUs: poissonArrivalsUs(RATE, COUNT, random),
        executionUs: (rows) => MEMORY_BOUND_MLP.us(rows) * (1 + jitter * (2 * random() - 1)),
        timerLateUs: eager ? 0 : 500,
      });
    };
    const held = run(false);
    const eager = run(true);
    expect(held.busyUs / eager.busyUs).toBeLessThanOrEqual(0.75);
    expect(quantileUs(held, 0.99)).toBeLessThanOrEqual(6 * MEMORY_BOUND_MLP.us(1));
  });
});

describe('closed loops', () => {
  /** Clients that send again within 100 to 400 us of their answer, one after the other. @returns requests a second */
  function rate(clients: number, hold: boolean): number {
    const total = clients * 60;
    let sent = clients;
    let place = 0;
    let backUs = 0;
    const log = simulate({
      // With preferred sizes that are never reached nothing is held for a stream.
      policy: policy({ maxRows: 64, ...(hold ? {} : { preferredRows: [63, 64] }) }),
      instances: 1,
      arrivals: Array.from({ length: clients }, (_, i) => ({ atUs: i * 30 })),
      executionUs: MEMORY_BOUND_MLP.us,
      onCompleted: (_, nowUs) => {
        place = nowUs === backUs ? place + 1 : 0;
        backUs = nowUs;
        return sent++ < total ? { atUs: nowUs + 100 + (place * 300) / clients } : undefined;
      },
    });
    return (log.completedUs.size / log.endUs) * 1e6;
  }

  test.each([1, 2, 3, 5, 8, 16, 48])('%i clients lose nothing to it', (clients) => {
    expect(rate(clients, true)).toBeGreaterThan(0.97 * rate(clients, false));
  });
});
