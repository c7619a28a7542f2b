/** The arithmetic of a latency objective, and the rule that an idle server refuses nobody. */
import { describe, expect, test } from '@jest/globals';
import { DynamicBatcher } from './dynamic-batcher.js';
import { Objective } from './objective.js';
import { BatchProfile } from './profile.js';
import { policy } from './testing/policies.js';

const IDLE = { idle: 1, stageable: 0, live: 1 };
const BUSY = { idle: 0, stageable: 0, live: 1 };
const ONE = { rows: 1, priority: 0, timeoutUs: 0, shapeKey: '' };
/** 5 ms a pass and 1 ms a row, always. */
const costUs = (rows: number): number => 5000 + 1000 * rows;

function learn(profile: BatchProfile): BatchProfile {
  for (const rows of [1, 2, 4, 8, 16, 32]) for (let i = 0; i < 4; i++) profile.record(rows, costUs(rows));
  return profile;
}

function batcher(objectiveUs: number, maxRows = 32): DynamicBatcher {
  const b = new DynamicBatcher(policy({ maxRows, objectiveUs }));
  learn(b.profile(''));
  return b;
}

describe('Objective', () => {
  const profile = learn(new BatchProfile(32));

  test('knows the most rows that can be executed in time', () => {
    const objective = new Objective(40_000);
    expect([4000, 6000, 10_500, 21_000, 1e9].map((us) => objective.rowsWithin(us, profile, 32))).toEqual([0, 1, 5, 16, 32]);
  });

  test('takes from the budget what replies were seen to take, but not everything for one stall', () => {
    const objective = new Objective(40_000);
    objective.recordOverhead(3000);
    objective.recordOverhead(1000);
    expect(objective.budgetUs).toBe(37_000);
    objective.recordOverhead(500_000);
    expect(objective.budgetUs).toBe(30_000);
    for (let i = 0; i < 10; i++) objective.recordOverhead(200);
    expect(objective.budgetUs).toBe(39_800);
  });

  test('binds nothing before it knows, nor where even a lone request would miss', () => {
    expect(new Objective(40_000).latestStartUs(new BatchProfile(32), 1, 0)).toBe(Infinity);
    expect(new Objective(5000).latestStartUs(profile, 1, 0)).toBe(Infinity);
    expect(new Objective(40_000).latestStartUs(profile, 1, 100)).toBe(100 + 40_000 - 6000);
  });

  test('gives up heads only for a batch that keeps up better', () => {
    const objective = new Objective(40_000);
    const heads = [0, 0, 20_000, 20_000, 20_000, 20_000, 20_000, 20_000].map((arrivedUs) => ({ rows: 1, arrivedUs }));
    const slow = 1 / 100_000;
    // The oldest two have 8 ms left: with them 3 rows can run, without them all six others.
    expect(objective.sacrifice(heads, 8, 32, profile, Infinity, 32_000)).toBe(2);
    expect(objective.sacrifice(heads, 8, 32, profile, slow, 32_000)).toBe(0);
    expect(objective.sacrifice(heads, 8, 32, profile, Infinity, 10_000)).toBe(0);
  });
});

describe('the batcher under an objective', () => {
  test('an idle server serves a request whose time is over, a busy one sheds it on time', () => {
    const b = batcher(10_000);
    const handle = b.enqueue(ONE, 0);
    expect(b.decide(3999, BUSY)).toMatchObject({ kind: 'wait', untilUs: 4000, shed: [] });
    expect(b.decide(9000, IDLE)).toMatchObject({ kind: 'dispatch', handles: [handle], shed: [] });
    const late = b.enqueue(ONE, 20_000);
    expect(b.decide(24_000, BUSY)).toMatchObject({ kind: 'wait', shed: [late] });
    expect(b.size).toBe(0);
  });

  test('of many that are late an idle server serves one batch', () => {
    const b = batcher(100_000);
    b.decide(0, IDLE);
    for (let i = 0; i < 20; i++) b.enqueue({ ...ONE, rows: 2 }, i);
    const decision = b.decide(200_000, IDLE);
    expect(decision).toMatchObject({ kind: 'dispatch', rows: 32 });
    expect(decision.shed).toHaveLength(4);
  });

  test('refuses at the door who would come too late behind those that wait, with a time to come back', () => {
    const b = batcher(40_000);
    b.decide(0, BUSY);
    const outcomes = Array.from({ length: 100 }, () => b.enqueue(ONE, 0));
    const refused = outcomes.filter((o) => typeof o !== 'number');
    expect(refused.length).toBeGreaterThan(50);
    expect(refused[0]).toMatchObject({ kind: 'shed', code: 'RESOURCE_EXHAUSTED', reason: 'latency_objective' });
    expect(refused[0]?.retryAfterMs).toBeGreaterThanOrEqual(1);
  });

  test('a batch is cut where its oldest member would be late', () => {
    const b = batcher(40_000);
    b.decide(0, BUSY);
    for (let i = 0; i < 16; i++) b.enqueue(ONE, 0);
    const decision = b.decide(26_000, IDLE);
    // 14 ms are left: nine rows take them, and no more would without some of the others.
    expect(decision).toMatchObject({ kind: 'dispatch', rows: 9, reason: 'full', shed: [] });
  });

  test('a full batch is staged behind another where its oldest member will be in time, and only there', () => {
    const staged = (ageUs: number): boolean => {
      const b = batcher(100_000, 16);
      b.decide(0, IDLE);
      for (let i = 0; i < 16; i++) b.enqueue(ONE, 0);
      expect(b.decide(0, IDLE)).toMatchObject({ kind: 'dispatch', rows: 16, staged: false });
      for (let i = 0; i < 16; i++) b.enqueue(ONE, 0);
      const decision = b.decide(ageUs, { idle: 0, stageable: 1, live: 1 });
      return decision.kind === 'dispatch' && decision.staged;
    };
    // 16 rows take 21 ms, and the batch before them is expected to end any moment.
    expect([0, 60_000, 78_000, 85_000].map(staged)).toEqual([true, true, true, false]);
  });

  test('a request that was lost with its instance is bound by nothing', () => {
    const b = batcher(10_000);
    const handle = b.requeue(ONE, 0, 0);
    expect(b.decide(50_000, BUSY)).toMatchObject({ kind: 'wait', shed: [] });
    expect(b.decide(50_000, IDLE)).toMatchObject({ kind: 'dispatch', handles: [handle] });
  });
});
