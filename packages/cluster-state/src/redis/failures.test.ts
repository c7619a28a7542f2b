// What the cluster's shared state does when Redis is full, empty, away, or of another mind about the time.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { FakeClock } from '@paceline/clock/testing';
import type { Member } from '@paceline/protocol';
import { connectRedis, RedisKeys, type RedisConnection } from '@paceline/redis';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { RedisDesiredState } from './desired-state.js';
import { RedisLeases } from './leases.js';
import { RedisMembership } from './membership.js';

const LIMIT_MS = 10_000;
const LONG_MS = 30_000;
const A = 'aaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbb';
const GATEWAY: Member = { role: 'gateway', id: '1111111111111111', address: '127.0.0.1:7001', draining: false };
const WORKER: Member = { role: 'worker', id: '3333333333333333', address: '127.0.0.1:7003', draining: false };

const keys = new RedisKeys('test');
let server: RedisServer;
let connection: RedisConnection;

beforeEach(async () => {
  server = await startRedis();
  connection = connectRedis({ mode: 'standalone', urls: [server.url], name: 'test' });
  await connection.whenUp(LIMIT_MS);
});

afterEach(async () => {
  jest.restoreAllMocks();
  connection.close();
  await server.stop();
});

const ids = (members: readonly Member[]): readonly string[] => members.map(({ id }) => id).sort();

describe('a Redis at maxmemory without eviction', () => {
  test('still leases, counts members and keeps desired models, none of them known before', async () => {
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    await expect(connection.command('XADD', keys.partition(0).in, '*', 'e', 'x')).rejects.toMatchObject({ reason: 'redis_full' });
    const leases = new RedisLeases(connection, keys);
    expect(await leases.acquire('p0', A, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 1 } });
    expect(await leases.renew('p0', A, LONG_MS)).toBe(true);
    await leases.release('p0', A);
    expect(await leases.acquire('p0', B, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 2 } });
    const membership = new RedisMembership(connection, keys, systemClock);
    expect(await membership.beat(GATEWAY, LONG_MS)).toEqual([GATEWAY]);
    expect(ids(await membership.beat(WORKER, LONG_MS))).toEqual([GATEWAY.id, WORKER.id]);
    const desired = new RedisDesiredState(connection, keys);
    await desired.write({ model: 'm', wanted: true, config: '{}' });
    expect(await desired.read()).toEqual({ fresh: false, models: [{ model: 'm', wanted: true, config: '{}' }] });
  });
});

describe('a Redis that lost its data', () => {
  test('leases are fresh again, and their epochs come above those that are known', async () => {
    const leases = new RedisLeases(connection, keys);
    await leases.acquire('p0', A, LONG_MS, 0);
    const before = await leases.acquire('p0', A, LONG_MS, 0);
    expect(before).toMatchObject({ epoch: { number: 2 }, fresh: false });
    await server.restart({ keepData: false });
    await connection.whenUp(LIMIT_MS);
    expect(await leases.renew('p0', A, LONG_MS)).toBe(false);
    expect(await leases.acquire('p0', B, LONG_MS, 2)).toEqual({ ok: true, epoch: { number: 3, owner: B }, cursor: '0-0', fresh: true });
  });

  test('one that kept it knows the epoch and the cursor', async () => {
    const leases = new RedisLeases(connection, keys);
    await leases.acquire('p0', A, LONG_MS, 6);
    await connection.command('HSET', keys.partition(0).state, 'cursor', '17-3');
    await leases.release('p0', A);
    await server.restart({ keepData: true });
    await connection.whenUp(LIMIT_MS);
    expect(await leases.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: true, epoch: { number: 8, owner: B }, cursor: '17-3', fresh: false });
  });

  test.each(['FLUSHALL', 'DEL'])('members that were there are kept until they had time to beat (%s)', async (loss) => {
    const clock = new FakeClock();
    // The clock of the process stands: only the mark of new data can tell, as Redis loses it within a moment.
    const gateway = new RedisMembership(connection, keys, clock);
    const worker = new RedisMembership(connection, keys, clock);
    await worker.beat(WORKER, LONG_MS);
    await gateway.beat(GATEWAY, LONG_MS);
    const lose = loss === 'DEL' ? ['DEL', keys.members.records, keys.members.expiry] : ['FLUSHALL'];
    await server.command(...lose);
    expect(ids(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY.id, WORKER.id]);
    clock.advance((LONG_MS / 3) * 1000);
    // The worker meanwhile found its data gone too, and keeps the gateway in the same way.
    expect(ids(await worker.beat(WORKER, LONG_MS))).toEqual([GATEWAY.id, WORKER.id]);
    expect(ids(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY.id, WORKER.id]);
  });

  test('a member that is silent after the loss is gone one ttl later', async () => {
    const waiter = connection.blocking('test waits', 1000);
    await waiter.whenUp(LIMIT_MS);
    const gateway = new RedisMembership(connection, keys, systemClock);
    await new RedisMembership(connection, keys, systemClock).beat(WORKER, LONG_MS);
    await gateway.beat(GATEWAY, 1000);
    await server.command('FLUSHALL');
    const lostUs = systemClock.nowUs();
    let members = await gateway.beat(GATEWAY, 1000);
    expect(ids(members)).toEqual([GATEWAY.id, WORKER.id]);
    while (members.length > 1 && systemClock.nowUs() - lostUs < LIMIT_MS * 1000) {
      await waiter.command('BLPOP', 'never', 0.1);
      members = await gateway.beat(GATEWAY, 1000);
    }
    expect(members).toEqual([GATEWAY]);
    expect(systemClock.nowUs() - lostUs).toBeGreaterThan(1_000_000);
    waiter.close();
  });
});

describe('a Redis that was away', () => {
  test('members are kept over a stop longer than their ttl', async () => {
    const clock = new FakeClock();
    const gateway = new RedisMembership(connection, keys, clock);
    await new RedisMembership(connection, keys, clock).beat(WORKER, 50);
    expect(ids(await gateway.beat(GATEWAY, 300))).toEqual([GATEWAY.id, WORKER.id]);
    const untilUs = (await storeTimeUs()) + 60_000;
    while ((await storeTimeUs()) < untilUs);
    clock.advance(10_000_000);
    expect(ids(await gateway.beat(GATEWAY, 300))).toEqual([GATEWAY.id, WORKER.id]);
  });

  test('while it is away every operation fails at once', async () => {
    const down = new Promise<void>((resolve) => connection.onChange((up) => void (up || resolve())));
    await server.kill();
    await down;
    const unavailable = { code: 'UNAVAILABLE', reason: 'redis_unavailable' };
    await expect(new RedisLeases(connection, keys).renew('p0', A, 1)).rejects.toMatchObject(unavailable);
    await expect(new RedisMembership(connection, keys, systemClock).beat(GATEWAY, 1)).rejects.toMatchObject(unavailable);
    await expect(new RedisDesiredState(connection, keys).read()).rejects.toMatchObject(unavailable);
  });
});

describe('time', () => {
  test('the wall clock of the process plays no part', async () => {
    const leases = new RedisLeases(connection, keys);
    const membership = new RedisMembership(connection, keys, systemClock);
    await leases.acquire('p0', A, LONG_MS, 0);
    await membership.beat(WORKER, LONG_MS);
    const now = Date.now();
    for (const shiftMs of [-3_600_000, 3_600_000]) {
      jest.spyOn(Date, 'now').mockReturnValue(now + shiftMs);
      expect(await leases.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: false, owner: A });
      expect(await leases.renew('p0', A, LONG_MS)).toBe(true);
      expect(ids(await membership.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY.id, WORKER.id]);
    }
  });

  test('the lease of a dead owner ends also when the clock of Redis is set back', async () => {
    const leases = new RedisLeases(connection, keys);
    const { owner } = keys.lease('p0');
    await leases.acquire('p0', A, 20_000, 0);
    await leases.renew('p0', A, 10_000);
    expect(await leases.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: false, owner: A });
    // As if it had been renewed when Redis thought it an hour later.
    await server.command('PEXPIRE', owner, '3600000');
    expect(await leases.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: false, owner: A });
    const leftMs = Number(await server.command('PTTL', owner));
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(10_000);
    expect(await leases.renew('p0', A, LONG_MS)).toBe(true);
  });

  test('the dead do not stay when the clock of Redis is set back', async () => {
    const gateway = new RedisMembership(connection, keys, systemClock);
    await new RedisMembership(connection, keys, systemClock).beat(WORKER, LONG_MS);
    // As if it had beaten when Redis thought it an hour later.
    await server.command('ZADD', keys.members.expiry, String(Date.now() + 3_600_000), WORKER.id);
    expect(ids(await gateway.beat(GATEWAY, LONG_MS))).toEqual([GATEWAY.id]);
  });
});

describe('what stays in Redis', () => {
  test('nothing of membership once all have left, and all of it ends by itself where they did not', async () => {
    const membership = new RedisMembership(connection, keys, systemClock);
    await membership.beat(GATEWAY, 1000);
    await membership.beat(WORKER, 1000);
    for (const key of [keys.members.records, keys.members.expiry]) {
      expect(Number(await server.command('PTTL', key))).toBeGreaterThan(1000);
    }
    await membership.leave(GATEWAY);
    await membership.leave(WORKER);
    expect(await server.command('KEYS', '*')).toBe('');
  });

  test('a member of another form is none, and disturbs nobody', async () => {
    await server.command('HSET', keys.members.records, 'x', '{"role":"cook"}', 'y', 'no JSON');
    expect(await new RedisMembership(connection, keys, systemClock).beat(GATEWAY, 1000)).toEqual([GATEWAY]);
  });

  test('a desired model of another form is an error that shows it', async () => {
    await server.command('HSET', keys.desired, 'm', '[1]');
    await expect(new RedisDesiredState(connection, keys).read()).rejects.toThrow('desired model m: a record of another form');
  });
});

async function storeTimeUs(): Promise<number> {
  const [seconds, micros] = (await connection.command('TIME')) as [string, string];
  return Number(seconds) * 1e6 + Number(micros);
}
