/** What every adapter of {@link Membership} promises. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Member } from '@paceline/protocol';
import type { Membership } from '../ports.js';
import type { OpenStore, StoreHarness } from './harness.js';

const GATEWAY: Member = { role: 'gateway', id: '1111111111111111', address: '127.0.0.1:7001', draining: false };
const SCHEDULER: Member = { role: 'scheduler', id: '2222222222222222', address: '', draining: false };
const WORKER: Member = { role: 'worker', id: '3333333333333333', address: '[::1]:7003', draining: false };
const LONG_MS = 30_000;

const byId = (members: readonly Member[]): readonly Member[] => [...members].sort((one, other) => (one.id < other.id ? -1 : 1));

export function describeMembership(name: string, open: OpenStore<Membership>): void {
  describe(`membership contract: ${name}`, () => {
    let store: StoreHarness<Membership>;
    let gateway: Membership;
    let scheduler: Membership;
    let worker: Membership;

    beforeEach(async () => {
      store = await open();
      gateway = store.connect();
      scheduler = store.connect();
      worker = store.connect();
    });

    afterEach(() => store.close());

    test('everybody sees everybody, itself included, as each announced itself', async () => {
      expect(await gateway.beat(GATEWAY, LONG_MS)).toEqual([GATEWAY]);
      await scheduler.beat(SCHEDULER, LONG_MS);
      expect(byId(await worker.beat(WORKER, LONG_MS))).toEqual([GATEWAY, SCHEDULER, WORKER]);
      expect(byId(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY, SCHEDULER, WORKER]);
    });

    test('a beat says what is so now', async () => {
      await gateway.beat(GATEWAY, LONG_MS);
      await worker.beat(WORKER, LONG_MS);
      await worker.beat({ ...WORKER, draining: true, address: '10.0.0.3:1' }, LONG_MS);
      expect(byId(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY, { ...WORKER, draining: true, address: '10.0.0.3:1' }]);
    });

    test('who leaves is gone at once, and may come back', async () => {
      await gateway.beat(GATEWAY, LONG_MS);
      await worker.beat(WORKER, LONG_MS);
      await worker.leave(WORKER);
      await worker.leave(WORKER);
      expect(await gateway.beat(GATEWAY, LONG_MS)).toEqual([GATEWAY]);
      await worker.beat(WORKER, LONG_MS);
      expect(byId(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY, WORKER]);
    });

    test('who falls silent is gone after the ttl that it gave, the others stay', async () => {
      await gateway.beat(GATEWAY, LONG_MS);
      await worker.beat(WORKER, 200);
      await scheduler.beat(SCHEDULER, LONG_MS);
      await store.elapse(250);
      expect(byId(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY, SCHEDULER]);
    });

    test('whoever looks sees those who are there, and is not seen', async () => {
      expect(await worker.look()).toEqual([]);
      const announced = { ...GATEWAY, common: { partitions: 16, secretMark: 'ab' } };
      await gateway.beat(announced, LONG_MS);
      await scheduler.beat(SCHEDULER, 200);
      expect(byId(await worker.look())).toEqual([announced, SCHEDULER]);
      await store.elapse(250);
      expect(await worker.look()).toEqual([announced]);
      expect(await gateway.beat(announced, LONG_MS)).toEqual([announced]);
    });

    test('each beat counts anew', async () => {
      await worker.beat(WORKER, 1000);
      await store.elapse(100);
      await worker.beat(WORKER, 3000);
      await store.elapse(1100);
      expect(byId(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY, WORKER]);
    });
  });
}
