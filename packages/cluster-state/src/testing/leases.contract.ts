/** What every adapter of {@link Leases} promises. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Leases } from '../ports.js';
import type { OpenStore, StoreHarness } from './harness.js';

const A = 'aaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbb';
const LONG_MS = 30_000;

export function describeLeases(name: string, open: OpenStore<Leases>): void {
  describe(`leases contract: ${name}`, () => {
    let store: StoreHarness<Leases>;
    let a: Leases;
    let b: Leases;

    beforeEach(async () => {
      store = await open();
      a = store.connect();
      b = store.connect();
    });

    afterEach(() => store.close());

    test('a new lease is fresh and begins at epoch 1', async () => {
      expect(await a.acquire('p0', A, LONG_MS, 0)).toEqual({ ok: true, epoch: { number: 1, owner: A }, cursor: '0-0', fresh: true });
    });

    test('a held one goes to nobody else, who is told the owner', async () => {
      await a.acquire('p0', A, LONG_MS, 0);
      expect(await b.acquire('p0', B, LONG_MS, 7)).toEqual({ ok: false, owner: A });
      expect(await b.renew('p0', B, LONG_MS)).toBe(false);
      await b.release('p0', B);
      expect(await b.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: false, owner: A });
      expect(await a.renew('p0', A, LONG_MS)).toBe(true);
    });

    test('of many that ask at once one gets it', async () => {
      const owners = Array.from({ length: 20 }, (_, index) => `${index}`.padStart(16, '0'));
      const results = await Promise.all(owners.map((owner) => store.connect().acquire('p0', owner, LONG_MS, 0)));
      const winners = results.filter(({ ok }) => ok);
      expect(winners).toHaveLength(1);
      const [winner] = winners;
      const holder = winner?.ok ? winner.epoch.owner : '';
      expect(results.filter((result) => !result.ok).map((result) => (result.ok ? '' : result.owner))).toEqual(
        Array.from({ length: 19 }, () => holder),
      );
    });

    test('a released one is free at once; each owner has a higher epoch, and none after the first is fresh', async () => {
      await a.acquire('p0', A, LONG_MS, 0);
      await a.release('p0', A);
      expect(await a.renew('p0', A, LONG_MS)).toBe(false);
      expect(await b.acquire('p0', B, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 2, owner: B }, fresh: false });
      await b.release('p0', B);
      expect(await a.acquire('p0', A, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 3, owner: A } });
    });

    test('the epoch comes above what is known elsewhere, and never below what was given out', async () => {
      expect(await a.acquire('p0', A, LONG_MS, 41)).toMatchObject({ epoch: { number: 42 }, fresh: true });
      await a.release('p0', A);
      expect(await b.acquire('p0', B, LONG_MS, 5)).toMatchObject({ epoch: { number: 43 } });
    });

    test('the holder may acquire again, above', async () => {
      await a.acquire('p0', A, LONG_MS, 0);
      expect(await a.acquire('p0', A, LONG_MS, 9)).toMatchObject({ ok: true, epoch: { number: 10, owner: A }, fresh: false });
      expect(await b.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: false, owner: A });
    });

    test('one that is not renewed ends by itself', async () => {
      await a.acquire('p0', A, 100, 0);
      await store.elapse(150);
      expect(await a.renew('p0', A, LONG_MS)).toBe(false);
      expect(await b.acquire('p0', B, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 2, owner: B } });
      expect(await a.renew('p0', A, LONG_MS)).toBe(false);
      await a.release('p0', A);
      expect(await b.renew('p0', B, LONG_MS)).toBe(true);
    });

    test('a renewal counts from when it is made', async () => {
      await a.acquire('p0', A, 1500, 0);
      await store.elapse(100);
      expect(await a.renew('p0', A, 3000)).toBe(true);
      await store.elapse(1600);
      expect(await b.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: false, owner: A });
    });

    test('leases do not touch each other', async () => {
      await a.acquire('p0', A, LONG_MS, 5);
      expect(await b.acquire('p1', B, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 1 }, fresh: true });
      expect(await b.acquire('placement', B, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 1 }, fresh: true });
    });
  });
}
