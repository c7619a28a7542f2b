// What streams need of a real cluster: bytes and blocked reads on every partition, and no node that takes others with it.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startRedisCluster, type RedisClusterGroup } from '@paceline/testkit';
import { connectRedis, type RedisConnection } from './connection.js';
import { RedisKeys } from './keys.js';

const LIMIT_MS = 20_000;
const BLOCK_MS = 500;
const PARTITIONS = Array.from({ length: 16 }, (_, partition) => partition);

describe('a cluster', () => {
  const keys = new RedisKeys('test');
  let group: RedisClusterGroup;
  let connection: RedisConnection;
  let readers: RedisConnection[] = [];

  beforeAll(async () => {
    group = await startRedisCluster({ password: 'p@ss' });
  }, 60_000);

  afterAll(() => group.stop());

  beforeEach(async () => {
    connection = connectRedis({ mode: 'cluster', urls: group.urls.slice(0, 1), name: 'test' });
    await connection.whenUp(LIMIT_MS);
  });

  afterEach(() => {
    for (const reader of readers.splice(0)) reader.close();
    connection.close();
  });

  async function reader(): Promise<RedisConnection> {
    const made = connection.blocking('reader', BLOCK_MS);
    readers.push(made);
    await made.whenUp(LIMIT_MS);
    return made;
  }

  test('does not span slots', async () => {
    expect(connection.spansSlots).toBe(false);
    const [one, other] = [keys.partition(0).in, keys.partition(1).in];
    await expect(connection.command('XREAD', 'STREAMS', one, other, '0', '0')).rejects.toMatchObject({ reason: 'redis_error' });
  });

  test('wakes a reader of each partition with the bytes that were written', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    readers = await Promise.all(PARTITIONS.map(() => reader()));
    const reads = readers.map((each, partition) =>
      each.commandBuffer('XREAD', 'BLOCK', BLOCK_MS * 10, 'STREAMS', keys.partition(partition).in, '0'),
    );
    for (const partition of PARTITIONS) await connection.command('XADD', keys.partition(partition).in, '*', 'e', bytes);
    for (const [partition, reply] of (await Promise.all(reads)).entries()) {
      expect(reply).toEqual([[Buffer.from(keys.partition(partition).in), [[expect.any(Buffer), [Buffer.from('e'), bytes]]]]]);
    }
  });

  test('says that a node is gone, and works on without being down', async () => {
    for (const partition of PARTITIONS) await connection.command('SET', keys.partition(partition).dead, '1');
    const changes: boolean[] = [];
    connection.onChange((up) => void changes.push(up));
    const lost = new Promise<void>((resolve) => connection.onNodeLost(resolve));
    await group.masters[1]?.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await lost;
    expect([connection.up, changes]).toEqual([true, []]);
    for (const partition of PARTITIONS) expect(await connection.command('GET', keys.partition(partition).dead)).toBe('1');
  });

  test('a node that hangs fails its own keys only, and serves them again afterwards', async () => {
    const [hanging] = group.masters;
    if (!hanging) throw new Error('a cluster has masters');
    for (const partition of PARTITIONS) await connection.command('SET', keys.partition(partition).dead, '1');
    const there = (await hanging.command('KEYS', '*dead')).split('\n');
    const isThere = (partition: number): boolean => there.includes(keys.partition(partition).dead);
    const stuck = PARTITIONS.filter(isThere);
    expect(stuck.length).toBeGreaterThanOrEqual(3);
    const blocked = await reader();
    const reading = blocked.commandBuffer('XREAD', 'BLOCK', BLOCK_MS, 'STREAMS', keys.partition(stuck[0] ?? 0).in, '$');
    hanging.pause();
    const pausedMs = performance.now();
    const calls = PARTITIONS.map((partition) => connection.command('GET', keys.partition(partition).dead));
    const failed = (await Promise.allSettled(calls)).map(({ status }) => status === 'rejected');
    expect(failed).toEqual(PARTITIONS.map(isThere));
    for (const partition of stuck) await expect(calls[partition]).rejects.toMatchObject({ reason: 'redis_unavailable' });
    await expect(reading).rejects.toMatchObject({ reason: 'redis_unavailable' });
    // Half a second of blocking and two of grace; and two timeouts of one second.
    expect(performance.now() - pausedMs).toBeLessThan(6000);
    hanging.resume();
    const limitMs = performance.now() + LIMIT_MS;
    const answers = async (key: string): Promise<unknown> => {
      for (;;) {
        const answer = await connection.command('GET', key).catch((error: unknown) => error);
        if (answer === '1' || performance.now() > limitMs) return answer;
      }
    };
    for (const partition of stuck) expect(await answers(keys.partition(partition).dead)).toBe('1');
  }, 60_000);
});
