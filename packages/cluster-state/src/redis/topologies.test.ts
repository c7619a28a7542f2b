// Leases and membership under a real failover: behind a sentinel, and in a cluster whose contract is the same.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import type { Member } from '@paceline/protocol';
import { connectRedis, RedisKeys, type RedisConnection, type RedisOptions } from '@paceline/redis';
import { startRedisCluster, startRedisSentinel, type RedisClusterGroup, type RedisSentinelGroup } from '@paceline/testkit';
import { describeDesiredState, describeLeases, describeMembership, type OpenStore } from '../testing/index.js';
import { RedisDesiredState } from './desired-state.js';
import { RedisLeases } from './leases.js';
import { RedisMembership } from './membership.js';

const LIMIT_MS = 20_000;
const LONG_MS = 60_000;
const TEST_MS = 60_000;
const A = 'aaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbb';
const GATEWAY: Member = { role: 'gateway', id: '1111111111111111', address: '127.0.0.1:7001', draining: false };
const WORKER: Member = { role: 'worker', id: '3333333333333333', address: '127.0.0.1:7003', draining: false };
const ids = (members: readonly Member[]): readonly string[] => members.map(({ id }) => id).sort();

async function connect(options: Omit<RedisOptions, 'name'>): Promise<RedisConnection> {
  const connection = connectRedis({ name: 'test', ...options });
  await connection.whenUp(LIMIT_MS);
  return connection;
}

/** Asks until it is answered; what fails meanwhile is what callers get, and must be `redis_unavailable`. */
async function answered<T>(ask: () => Promise<T>): Promise<{ readonly answer: T; readonly failures: number }> {
  const limitUs = systemClock.nowUs() + LIMIT_MS * 1000;
  for (let failures = 0; ; failures++) {
    try {
      return { answer: await ask(), failures };
    } catch (error) {
      expect(error).toMatchObject({ code: 'UNAVAILABLE', reason: 'redis_unavailable' });
      if (systemClock.nowUs() > limitUs) throw error;
      await new Promise<void>((resolve) => systemClock.setTimer(20_000, resolve));
    }
  }
}

describe('behind a sentinel', () => {
  let group: RedisSentinelGroup;
  let connection: RedisConnection;

  beforeAll(async () => {
    group = await startRedisSentinel({ password: 'secret' });
    connection = await connect({ mode: 'sentinel', urls: [group.url], sentinelMaster: group.masterName, password: 'secret' });
  }, TEST_MS);

  afterAll(async () => {
    connection.close();
    await group.stop();
  });

  test(
    'leases, their epochs and members outlive the master',
    async () => {
      const keys = new RedisKeys('test');
      const leases = new RedisLeases(connection, keys);
      const gateway = new RedisMembership(connection, keys, systemClock);
      await leases.acquire('p0', A, LONG_MS, 4);
      await new RedisMembership(connection, keys, systemClock).beat(WORKER, 1000);
      await gateway.beat(GATEWAY, 1000);
      expect(await group.master.command('WAIT', '1', '5000')).toBe('1');
      await group.master.kill();
      const { answer, failures } = await answered(() => leases.renew('p0', A, LONG_MS));
      expect(answer).toBe(true);
      expect(failures).toBeGreaterThan(0);
      expect(await group.replica.command('INFO', 'replication')).toContain('role:master');
      // The worker's time may have passed meanwhile, which is not its fault.
      expect(ids((await answered(() => gateway.beat(GATEWAY, 1000))).answer)).toEqual([GATEWAY.id, WORKER.id]);
      expect(await leases.acquire('p0', B, LONG_MS, 0)).toEqual({ ok: false, owner: A });
      await leases.release('p0', A);
      expect(await leases.acquire('p0', B, LONG_MS, 0)).toMatchObject({ ok: true, epoch: { number: 6, owner: B }, fresh: false });
    },
    TEST_MS,
  );
});

describe('in a cluster', () => {
  let group: RedisClusterGroup;

  beforeAll(async () => {
    group = await startRedisCluster({ withReplicas: true });
  }, TEST_MS);

  afterAll(() => group.stop());

  function open<Port>(make: (connection: RedisConnection, keys: RedisKeys) => Port): OpenStore<Port> {
    return async () => {
      // One node is enough to find the others.
      const connection = await connect({ mode: 'cluster', urls: group.urls.slice(0, 1) });
      const waiter = connection.blocking('test waits', 5000);
      await waiter.whenUp(LIMIT_MS);
      const keys = new RedisKeys('test');
      for (const master of group.masters) await master.command('FLUSHALL');
      return {
        connect: () => make(connection, keys),
        elapse: async (ms: number) => {
          await waiter.command('BLPOP', 'never', ms / 1000);
        },
        close: () => {
          waiter.close();
          connection.close();
          return Promise.resolve();
        },
      };
    };
  }

  describeLeases(
    'Redis Cluster',
    open((connection, keys) => new RedisLeases(connection, keys)),
  );
  describeMembership(
    'Redis Cluster',
    open((connection, keys) => new RedisMembership(connection, keys, systemClock)),
  );
  describeDesiredState(
    'Redis Cluster',
    open((connection, keys) => new RedisDesiredState(connection, keys)),
  );

  test(
    'a master that dies costs only its own partitions, and those only until its replica has taken over',
    async () => {
      const connection = await connect({ mode: 'cluster', urls: group.urls });
      const keys = new RedisKeys('failover');
      const leases = new RedisLeases(connection, keys);
      const names = Array.from({ length: 16 }, (_, partition) => `p${partition}`);
      for (const name of names) expect(await leases.acquire(name, A, LONG_MS, 0)).toMatchObject({ ok: true });
      const [first, ...others] = group.masters;
      const held = (await first?.command('KEYS', '*owner'))?.split('\n') ?? [];
      const lost = names.filter((name) => held.includes(keys.lease(name).owner));
      expect(lost.length).toBeGreaterThanOrEqual(3);
      expect(await first?.command('WAIT', '1', '5000')).toBe('1');
      await first?.kill();
      for (const name of names.filter((each) => !lost.includes(each))) expect(await leases.renew(name, A, LONG_MS)).toBe(true);
      for (const name of lost) expect((await answered(() => leases.renew(name, A, LONG_MS))).answer).toBe(true);
      for (const name of names) expect(await leases.renew(name, A, LONG_MS)).toBe(true);
      expect(await group.replicas[0]?.command('INFO', 'replication')).toContain('role:master');
      for (const other of others) expect(await other.command('INFO', 'replication')).toContain('role:master');
      connection.close();
    },
    TEST_MS,
  );
});
