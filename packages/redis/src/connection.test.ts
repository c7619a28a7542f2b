// Against real servers: a connection comes back by itself, fails at once while it is down, and is never stuck.
import { afterEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { startRedis, startRedisCluster, startRedisSentinel, TestAuthority, type RedisServer } from '@paceline/testkit';
import { connectRedis, type RedisConnection } from './connection.js';
import type { RedisOptions } from './options.js';
import { RedisScript } from './script.js';
import { RedisTime } from './time.js';

const LIMIT_MS = 10_000;
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(...[options]: Parameters<typeof startRedis>): Promise<RedisServer> {
  const server = await startRedis(options);
  closers.push(() => server.stop());
  return server;
}

function connect(options: Partial<RedisOptions> & Pick<RedisOptions, 'urls'>): RedisConnection {
  const connection = connectRedis({ mode: 'standalone', name: 'test', ...options });
  closers.push(() => connection.close());
  return connection;
}

async function join(server: RedisServer, options: Partial<RedisOptions> = {}): Promise<RedisConnection> {
  const connection = connect({ urls: [server.url], ...options });
  await connection.whenUp(LIMIT_MS);
  return connection;
}

function whenDown(connection: RedisConnection): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const stop = connection.onChange((up, error) => {
      if (up) return;
      stop();
      resolve(error);
    });
  });
}

describe('connectRedis', () => {
  test('carries bytes unchanged, names itself, and answers text or Buffers', async () => {
    const connection = await join(await start(), { name: 'paceline-gateway' });
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await connection.command('SET', 'k', bytes);
    expect(await connection.commandBuffer('GET', 'k')).toEqual(bytes);
    expect(await connection.command('CLIENT', 'GETNAME')).toBe('paceline-gateway');
  });

  test('fails at once while Redis is gone, says so, and comes back by itself', async () => {
    const server = await start();
    const connection = await join(server);
    const down = whenDown(connection);
    await server.kill();
    await down;
    expect(connection.up).toBe(false);
    const calls = Array.from({ length: 100 }, () => connection.command('PING'));
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'UNAVAILABLE', reason: 'redis_unavailable' });
    await server.start();
    await connection.whenUp(LIMIT_MS);
    expect(await connection.command('PING')).toBe('PONG');
  });

  test('may be made before its Redis', async () => {
    const server = await start();
    await server.kill();
    const connection = connect({ urls: [server.url] });
    await expect(connection.whenUp(50)).rejects.toMatchObject({
      reason: 'redis_unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    await server.start();
    await connection.whenUp(LIMIT_MS);
    expect(await connection.command('PING')).toBe('PONG');
  });

  test('a command that a stopped Redis does not answer fails, and the next one after it works again', async () => {
    const server = await start();
    const connection = await join(server, { commandTimeoutMs: 200 });
    server.pause();
    const before = performance.now();
    await expect(connection.command('INCR', 'n')).rejects.toMatchObject({ reason: 'redis_unavailable' });
    expect(performance.now() - before).toBeLessThan(5000);
    server.resume();
    await connection.whenUp(LIMIT_MS);
    // What was under way is not sent again: it was done once or not at all.
    expect(Number(await connection.command('GET', 'n'))).toBeLessThanOrEqual(1);
  });

  test('a blocked read ends when its time is over, when Redis dies, and when it is stopped', async () => {
    const server = await start();
    const connection = await join(server, { commandTimeoutMs: 100 });
    const reader = connection.blocking('reader', 300);
    closers.push(() => reader.close());
    await reader.whenUp(LIMIT_MS);
    const read = (): Promise<unknown> => reader.commandBuffer('XREAD', 'BLOCK', 300, 'STREAMS', 's', '$');
    // Longer than the command timeout of the connection it comes from.
    expect(await read()).toBeNull();
    let reading = read();
    await server.restart({ keepData: false });
    await expect(reading).rejects.toMatchObject({ reason: 'redis_unavailable' });
    await reader.whenUp(LIMIT_MS);
    reading = read();
    server.pause();
    await expect(reading).rejects.toMatchObject({ reason: 'redis_unavailable' });
    server.resume();
    await reader.whenUp(LIMIT_MS);
    expect(await read()).toBeNull();
  });

  test('a reader that is cut off twenty times misses nothing and is back at once each time', async () => {
    const server = await start();
    const connection = await join(server);
    const reader = connection.blocking('reader', 500);
    closers.push(() => reader.close());
    await reader.whenUp(LIMIT_MS);
    const seen: string[] = [];
    let cursor = '0-0';
    const readOn = async (count: number): Promise<void> => {
      while (seen.length < count) {
        await reader.whenUp(LIMIT_MS);
        const reply = (await reader.command('XREAD', 'BLOCK', 500, 'STREAMS', 's', cursor).catch(() => null)) as
          [string, [string, string[]][]][] | null;
        for (const [id, fields] of reply?.[0]?.[1] ?? []) {
          cursor = id;
          seen.push(fields[1] ?? '');
        }
      }
    };
    for (let round = 1; round <= 20; round++) {
      const reading = readOn(2 * round);
      await connection.command('XADD', 's', '*', 'n', 2 * round - 1);
      const before = performance.now();
      const down = whenDown(connection);
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await down;
      await connection.whenUp(LIMIT_MS);
      await connection.command('XADD', 's', '*', 'n', 2 * round);
      await reading;
      expect(performance.now() - before).toBeLessThan(2000);
    }
    expect(seen).toEqual(Array.from({ length: 40 }, (_, index) => String(index + 1)));
  }, 60_000);

  test('password and TLS: both are checked, and a refusal says which', async () => {
    const authority = await TestAuthority.create();
    closers.push(() => authority.remove());
    const caFile = authority.certificate.certFile;
    const server = await start({ password: 'secret', tls: { ...(await authority.issue('redis')), caFile } });
    const bare = `rediss://127.0.0.1:${server.port}`;
    const connection = connect({ urls: [bare], caFile, password: 'secret' });
    await connection.whenUp(LIMIT_MS);
    expect(await connection.command('PING')).toBe('PONG');
    const stranger = connect({ urls: [bare], caFile, password: 'wrong' });
    await expect(stranger.whenUp(300)).rejects.toThrow('WRONGPASS');
    await expect(stranger.command('PING')).rejects.toMatchObject({ reason: 'redis_denied' });
    await expect(connect({ urls: [server.url] }).whenUp(300)).rejects.toThrow('certificate');
  });

  test('TLS reaches a master through its sentinel, and every node of a cluster', async () => {
    const authority = await TestAuthority.create();
    closers.push(() => authority.remove());
    const caFile = authority.certificate.certFile;
    const tls = { ...(await authority.issue('redis')), caFile };
    const sentinel = await startRedisSentinel({ tls, password: 'secret' });
    closers.push(() => sentinel.stop());
    const master = connect({ mode: 'sentinel', urls: [sentinel.url], sentinelMaster: sentinel.masterName, caFile, password: 'secret' });
    await master.whenUp(LIMIT_MS);
    expect(await master.command('SET', 'k', 'v')).toBe('OK');
    const cluster = await startRedisCluster({ tls });
    closers.push(() => cluster.stop());
    const nodes = connect({ mode: 'cluster', urls: cluster.urls.slice(0, 1), caFile });
    await nodes.whenUp(LIMIT_MS);
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) expect(await nodes.command('SET', key, 'v')).toBe('OK');
    const sizes = await Promise.all(cluster.masters.map((each) => each.command('DBSIZE')));
    expect(sizes.every((size) => Number(size) > 0)).toBe(true);
  }, 60_000);

  test('says why no node of a cluster will do', async () => {
    const server = await start({ password: 'secret' });
    const nodes = (password: string): RedisConnection =>
      connect({ mode: 'cluster', urls: [`redis://:${password}@127.0.0.1:${server.port}`] });
    await expect(nodes('secret').whenUp(300)).rejects.toThrow('cluster support disabled');
    await expect(nodes('wrong').whenUp(300)).rejects.toThrow('WRONGPASS');
  });

  test('runs scripts that Redis has not, or has no more', async () => {
    const server = await start();
    const connection = await join(server);
    const script = new RedisScript(`return {KEYS[1], redis.call('INCRBY', KEYS[1], ARGV[1])}`);
    expect(await connection.run(script, ['n'], [2])).toEqual(['n', 2]);
    expect(await connection.run(script, ['n'], [2])).toEqual(['n', 4]);
    await server.command('SCRIPT', 'FLUSH');
    expect(await connection.run(script, ['n'], [2])).toEqual(['n', 6]);
    expect(await server.command('INFO', 'commandstats')).toMatch(/cmdstat_eval:calls=2,/);
  });

  test('tells full, wrong and unable apart', async () => {
    const server = await start();
    const connection = await join(server);
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    await expect(connection.command('SET', 'k', 'v')).rejects.toMatchObject({ code: 'UNAVAILABLE', reason: 'redis_full' });
    expect(await connection.run(new RedisScript(`return redis.call('SET', KEYS[1], '1')`), ['k'], [])).toBe('OK');
    await expect(connection.command('LPUSH', 'k', 'v')).rejects.toMatchObject({ reason: 'redis_full' });
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    await expect(connection.command('LPUSH', 'k', 'v')).rejects.toMatchObject({ code: 'INTERNAL', reason: 'redis_error' });
  });

  test.each([
    [{ urls: [] }, 'at least one'],
    [{ urls: ['http://h:1'] }, 'redis://'],
    [{ urls: ['redis://a', 'redis://b'] }, 'one Redis URL is expected in standalone mode, found 2'],
    [{ urls: ['redis://a', 'rediss://b'], mode: 'cluster' as const }, 'all redis:// or all rediss://'],
    [{ urls: ['redis://a'], mode: 'sentinel' as const }, 'the name of the master'],
    [{ urls: ['redis://a/1'], mode: 'cluster' as const }, 'found "1" in cluster mode'],
    [{ urls: ['redis://a'], caFile: '/none' }, 'only with rediss://'],
    [{ urls: ['rediss://a'], caFile: '/none/such' }, 'the CA file for Redis cannot be read'],
  ])('refuses %j', (options, message) => {
    expect(() => connect(options)).toThrow(message);
  });
});

describe('RedisTime', () => {
  test('measures how long an entry has lain there by the clock of Redis', async () => {
    const connection = await join(await start());
    const time = new RedisTime(connection, 's', systemClock);
    expect(time.dwellUs('1-0')).toBe(0);
    await time.refresh();
    const id = String(await connection.command('XADD', 's', '*', 'f', 'v'));
    const writtenUs = systemClock.nowUs();
    let measuredUs = 0;
    while (systemClock.nowUs() - writtenUs < 30_000) {
      await connection.command('PING');
      measuredUs = time.dwellUs(id);
    }
    // An id has whole milliseconds; a busy machine may have stopped us between any two lines.
    expect(measuredUs).toBeGreaterThan(20_000);
    expect(measuredUs).toBeLessThan(systemClock.nowUs() - writtenUs + 10_000);
    expect(time.dwellUs(`${Date.now() + 3_600_000}-0`)).toBe(0);
    time.close();
  });
});
