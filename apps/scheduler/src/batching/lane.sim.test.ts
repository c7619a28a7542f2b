/**
 * Random traffic through a lane whose model fails on some requests and whose instances are killed by others, with clients
 * that leave: every request ends exactly once, and nobody pays for a batch-mate. Set SIM_SEED to repeat a run that failed.
 */
import { describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { ServingError } from '@paceline/protocol';
import { StatisticsRegistry } from '@paceline/telemetry';
import type { Batch } from '@paceline/worker-rpc';
import { LaneIntake } from '../intake/lane-intake.js';
import { Lanes } from './lanes.js';
import { FakeWorker, RecordedReplies, envelope, laneSpec } from './testing/fakes.js';

const SEED = Number(process.env['SIM_SEED'] ?? 7);
const REQUESTS = 300;

/** A linear congruential generator: numbers in [0, 1), the same on every machine. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

describe(`lane under random faults, SIM_SEED=${SEED}`, () => {
  test.each(Array.from({ length: 40 }, (_, i) => SEED + i))('seed %i', (seed) => {
    const random = seeded(seed);
    const clock = new FakeClock();
    const worker = new FakeWorker();
    const replies = new RecordedReplies();
    const statistics = new StatisticsRegistry();
    const lanes = new Lanes({ clock, link: worker, replies, statistics });
    worker.setListener(lanes);
    const intake = new LaneIntake(lanes, replies);
    const instances = ['g_0', 'g_1'];
    lanes.open(laneSpec({ maxBatchSize: 8, instances, delayUs: random() < 0.3 ? 500 : 0 }));

    const fails = new Set<number>();
    const kills = new Set<number>();
    const cancelled = new Set<number>();
    const served = new Map<number, number>();
    const starts = new Map<number, number>();
    const open = new Set<number>();
    let seen = 0;

    /** Ends one of the batches at the head of an instance, as its members make it end. */
    const complete = (): void => {
      while (seen < worker.batches.length) open.add(seen++);
      const heads = [...instances, 'quarantine']
        .map((name) => [...open].find((i) => worker.batches[i]?.instance === name))
        .filter((i) => i !== undefined);
      const index = heads[Math.floor(random() * heads.length)];
      if (index === undefined) return;
      open.delete(index);
      const numbers = worker.numbers()[index] as number[];
      expect(numbers.length).toBeLessThanOrEqual(8);
      for (const n of numbers) starts.set(n, (starts.get(n) ?? 0) + 1);
      if (numbers.some((n) => kills.has(n))) {
        const { instance, quarantine } = worker.batches[index] as Batch;
        if (quarantine) return worker.complete(index, 'lost');
        worker.instance(instance, 'down');
        worker.complete(index, 'lost');
        for (const staged of [...open].filter((i) => worker.batches[i]?.instance === instance)) {
          open.delete(staged);
          worker.complete(staged, 'lost', { started: false });
        }
        worker.instance(instance, 'ready');
      } else if (numbers.some((n) => fails.has(n))) {
        worker.complete(index, 'failed', { error: new ServingError('INVALID_ARGUMENT', 'index out of range') });
      } else {
        for (const n of numbers) served.set(n, (served.get(n) ?? 0) + 1);
        worker.complete(index, 'ok');
      }
    };

    for (let number = 0; number < REQUESTS; number++) {
      if (random() < 0.02) kills.add(number);
      else if (random() < 0.05) fails.add(number);
      intake.onEnvelope(envelope(number));
      if (random() < 0.1) {
        const victim = Math.floor(random() * (number + 1));
        if (!served.has(victim) && !replies.frames.has(victim)) cancelled.add(victim);
        intake.onCancel({ gateway: 'g', number: victim }, 'm', '1');
      }
      if (random() < 0.5) clock.advance(Math.floor(random() * 300));
      if (random() < 0.4) complete();
    }
    for (let rounds = 0; statistics.forVersion('m', '1').pendingRequests > 0 || open.size > 0 || seen < worker.batches.length; rounds++) {
      expect(rounds).toBeLessThan(10_000);
      clock.advance(500);
      complete();
    }

    for (let number = 0; number < REQUESTS; number++) {
      const frame = replies.frames.get(number);
      expect(served.get(number) ?? 0).toBeLessThanOrEqual(1);
      expect(starts.get(number) ?? 0).toBeLessThanOrEqual(4);
      if (cancelled.has(number)) expect(frame).toBeUndefined();
      else if (kills.has(number)) expect(frame).toMatchObject({ ok: false, error: { code: 'INTERNAL' } });
      else if (fails.has(number)) expect(frame).toMatchObject({ ok: false, error: { code: 'INVALID_ARGUMENT' } });
      else expect([number, served.get(number), frame]).toEqual([number, 1, undefined]);
    }
    expect(statistics.forVersion('m', '1').pendingRequests).toBe(0);
  });
});
