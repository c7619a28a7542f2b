/** The learned peak on the two shapes of cost that matter, with 20 % of noise on every run. */
import { describe, expect, test } from '@jest/globals';
import { BatchProfile } from './profile.js';
import { classOf, classSize } from './size-class.js';
import { seeded } from './testing/policies.js';

/** Rows a second at 1, 8, 16, 32, 64 rows of a small text-direction CNN: falls off once its activations leave the cache. */
const CNN = new Map([
  [1, 480],
  [2, 560],
  [4, 590],
  [8, 637],
  [16, 605],
  [32, 521],
  [64, 356],
]);
/** ... of a 50 MB MLP that is bound by reading its weights. */
const MLP = new Map([
  [1, 447],
  [2, 890],
  [4, 1700],
  [8, 3000],
  [16, 4423],
  [32, 4750],
  [64, 4934],
]);
/** As a CNN measured while its neighbours took the cache: better below 8, and no better at 16 than at 32. */
const BUMPY = new Map([
  [1, 1033],
  [2, 925],
  [4, 697],
  [8, 708],
  [16, 455],
  [32, 460],
  [64, 400],
]);
/** Cost proportional to the rows. */
const LINEAR = new Map([
  [1, 100],
  [64, 100],
]);

/** Microseconds of a batch, between the measured sizes linear in the rate. */
function costUs(rates: ReadonlyMap<number, number>, rows: number): number {
  const points = [...rates];
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1] as [number, number];
    const [x1, y1] = points[i] as [number, number];
    if (rows <= x1) return (rows / (y0 + ((y1 - y0) * (rows - x0)) / (x1 - x0))) * 1e6;
  }
  return Infinity;
}

/** Runs `batches` batches out of a queue that always holds 64 rows; returns rows a second reached over the last half. */
function saturate(rates: ReadonlyMap<number, number>, seed: number, batches: number): { profile: BatchProfile; rate: number } {
  const random = seeded(seed);
  const profile = new BatchProfile(64);
  let rows = 0;
  let us = 0;
  for (let i = 0; i < batches; i++) {
    const size = profile.limit(64);
    const took = costUs(rates, size) * (1 + 0.4 * (random() - 0.5));
    profile.record(size, took);
    if (i < batches / 2) continue;
    rows += size;
    us += costUs(rates, size);
  }
  return { profile, rate: (rows / us) * 1e6 };
}

describe('size classes', () => {
  test('hold every size, two an octave', () => {
    for (let rows = 1; rows <= 4096; rows++) {
      const size = classSize(classOf(rows));
      expect(size).toBeGreaterThanOrEqual(rows);
      expect(rows / size).toBeGreaterThan(rows <= 2 ? 0.49 : 0.66);
      expect(classSize(classOf(size))).toBe(size);
    }
  });
});

describe('the learned peak', () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])('finds the sizes at which the CNN is fast (seed %i)', (seed) => {
    const { profile, rate } = saturate(CNN, seed, 400);
    expect([8, 16]).toContain(profile.peakRows);
    expect(rate).toBeGreaterThan(0.92 * 637);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('looks beyond a size that is no better than the next larger one (seed %i)', (seed) => {
    const { profile } = saturate(BUMPY, seed, 400);
    expect([1, 2]).toContain(profile.peakRows);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('keeps the MLP at large batches (seed %i)', (seed) => {
    expect(saturate(MLP, seed, 400).rate).toBeGreaterThan(0.92 * 4934);
  });

  test('leaves a size that is far too large after one run', () => {
    const profile = new BatchProfile(64);
    profile.record(2, costUs(CNN, 2));
    for (const size of [64, 32]) {
      expect(profile.limit(64)).toBe(size);
      profile.record(size, 2 * costUs(CNN, size));
    }
    expect(profile.limit(64)).toBe(16);
  });

  test('a cost proportional to the rows gains nothing from large batches, so as a rule the small ones win', () => {
    const peaks = Array.from({ length: 20 }, (_, seed) => saturate(LINEAR, seed, 400).profile.peakRows ?? 64);
    expect(peaks.filter((rows) => rows === 8 || rows === 16).length).toBeGreaterThanOrEqual(12);
  });

  test('cuts nothing before it was measured', () => {
    const profile = new BatchProfile(64);
    expect(profile.limit(64)).toBe(64);
    expect(profile.peakRows).toBeUndefined();
    expect(profile.expectedUs(8)).toBeUndefined();
    for (let i = 0; i < 20; i++) profile.record(1, 1000);
    expect(profile.limit(64)).toBe(64);
  });

  test('never tries to cut a batch of up to 8 rows', () => {
    const profile = new BatchProfile(8);
    for (let i = 0; i < 500; i++) {
      expect(profile.limit(8)).toBe(8);
      profile.record(8, 8000 * (1 + (i % 3) / 10));
    }
  });

  test('a size under 8 wins only when ordinary traffic showed it to be clearly better', () => {
    const profile = new BatchProfile(8);
    for (let i = 0; i < 20; i++) profile.record(8, 8000);
    for (let i = 0; i < 20; i++) profile.record(2, 1900);
    expect(profile.limit(8)).toBe(8);
    for (let i = 0; i < 20; i++) profile.record(2, 1000);
    expect(profile.limit(8)).toBe(2);
  });

  test('forgets: after the machine changed the peak moves', () => {
    const { profile } = saturate(CNN, 3, 400);
    const random = seeded(3);
    for (let i = 0; i < 4000; i++) {
      const size = profile.limit(64);
      profile.record(size, costUs(MLP, size) * (1 + 0.4 * (random() - 0.5)));
    }
    expect(profile.peakRows ?? 64).toBeGreaterThanOrEqual(32);
  });
});

describe('expected times', () => {
  test('between measured sizes are interpolated, the worst is the worst of the last 32', () => {
    const profile = new BatchProfile(64);
    for (let i = 0; i < 32; i++) {
      profile.record(8, 2000 + i);
      profile.record(32, 5000);
    }
    expect(profile.expectedUs(32)).toBeCloseTo(5000);
    expect(profile.expectedUs(16)).toBeGreaterThan(2500);
    expect(profile.expectedUs(16)).toBeLessThan(3500);
    expect(profile.worstUs(8)).toBeCloseTo(2031);
    for (let i = 0; i < 32; i++) profile.record(8, 1000);
    expect(profile.worstUs(8)).toBeCloseTo(1000);
  });
});
