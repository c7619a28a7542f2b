// Nothing is lost when Redis goes, comes back empty, is full, or belongs to somebody else.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { until } from '@paceline/link/testing';
import { LEASE_STATE } from '@paceline/redis';
import { GATEWAY, OWNER, RedisRig, requestOf, untilAsync } from './testing/redis-rig.js';

let rig: RedisRig;
beforeEach(async () => {
  rig = await RedisRig.open();
});
afterEach(() => rig.close());

test('who is not the owner any more trims nothing and stops reading', async () => {
  const reader = rig.read();
  await rig.own('somebody else');
  rig.queue.enqueue(requestOf(1));
  await until('read', () => rig.seen.length === 1);
  await untilAsync('it has left', async () => !String(await rig.redis.command('CLIENT', 'LIST')).includes('paceline-intake'));
  await reader.stop();
  expect(await rig.length()).toBe(1);
  expect(await rig.redis.command('HGET', rig.partition.state, LEASE_STATE.cursor)).toBeNull();
});

test('a Redis that comes back empty loses nothing: the gateway sends again, the reader starts at its beginning', async () => {
  const before = rig.read();
  rig.queue.enqueue(requestOf(1));
  await until('read', () => rig.seen.length === 1);
  await rig.server.kill();
  await until('noticed', () => !rig.redis.up);
  rig.queue.enqueue(requestOf(2));
  await until('told', () => rig.problems.some((problem) => problem.startsWith('requests cannot be handed over')));
  expect(rig.queue.waiting).toBe(1);
  await rig.server.start();
  await rig.redis.whenUp(5000);
  // As the scheduler does that had the lease: it acquires it again.
  await before.stop();
  await rig.own(OWNER);
  rig.read(before.cursor);
  await until('read', () => rig.numbers().includes(2) && rig.numbers().filter((number) => number === 1).length >= 2);
  await until('told', () => rig.problems.includes('requests are handed over through Redis again'));
  expect(rig.queue.counters.failures).toBeGreaterThan(0);
}, 20_000);

test('when a node of a cluster is gone, what is unanswered is sent again though the connection stands', async () => {
  let lose = (): void => undefined;
  const redis = new Proxy(rig.redis, {
    get(target, name) {
      if (name === 'onNodeLost') return (listener: () => void) => ((lose = listener), () => undefined);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
  const queue = rig.queueOf({ redis });
  rig.read();
  queue.enqueue(requestOf(1));
  queue.enqueue(requestOf(2));
  await until('read', () => rig.seen.length === 2);
  queue.forget({ gateway: GATEWAY, number: 2 });
  await until('written', () => queue.counters.requests === 2);
  lose();
  await until('read again', () => rig.seen.length === 3);
  expect([rig.numbers(), queue.counters.resent]).toEqual([[1, 2, 1], 1]);
  queue.close();
});

test('what was lost before its confirmation was read here is sent again, too', async () => {
  let confirm = (): void => undefined;
  const confirmed = new Promise<void>((resolve) => (confirm = resolve));
  let written = 0;
  const redis = new Proxy(rig.redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'command') return (value as () => unknown).bind(target);
      return async (...args: Parameters<typeof target.command>) => {
        const reply = await target.command(...args);
        written++;
        await confirmed;
        return reply;
      };
    },
  });
  const queue = rig.queueOf({ redis });
  queue.enqueue(requestOf(1));
  await until('in the stream', () => written === 1);
  await rig.redis.command('FLUSHALL');
  await rig.own(OWNER);
  queue.onOwner(0, { number: 2, owner: OWNER });
  confirm();
  rig.read();
  await until('read', () => rig.numbers().includes(1));
  queue.close();
});

test('a full Redis makes requests wait, and is tried again until there is room', async () => {
  rig.read();
  rig.queue.enqueue(requestOf(1));
  await until('read', () => rig.seen.length === 1);
  await rig.redis.command('CONFIG', 'SET', 'maxmemory', '1');
  rig.queue.enqueue(requestOf(2));
  await until('told', () => rig.problems.length > 0);
  expect(rig.problems).toEqual([expect.stringContaining('maxmemory')]);
  await until('tried again', () => rig.queue.counters.failures >= 2);
  expect(rig.numbers()).toEqual([1]);
  // One that is answered meanwhile, by its deadline, is not written any more.
  rig.queue.enqueue(requestOf(3));
  rig.queue.forget({ gateway: GATEWAY, number: 3 });
  await rig.redis.command('CONFIG', 'SET', 'maxmemory', '0');
  await until('read', () => rig.seen.length === 2);
  rig.queue.enqueue(requestOf(4));
  await until('read', () => rig.seen.length === 3);
  expect(rig.numbers()).toEqual([1, 2, 4]);
  expect(rig.queue.counters.resent).toBe(0);
});

test('at the memory limit the cursor still moves and the stream is still trimmed', async () => {
  rig.queue.enqueue(requestOf(1));
  await until('written', () => rig.queue.counters.requests === 1);
  await rig.redis.command('CONFIG', 'SET', 'maxmemory', '1');
  rig.read();
  await until('read', () => rig.seen.length === 1);
  await untilAsync('trimmed', async () => (await rig.length()) === 0);
  await rig.redis.command('CONFIG', 'SET', 'maxmemory', '0');
});

test('twenty cut connections lose nothing', async () => {
  rig.read();
  for (let round = 0; round < 20; round++) {
    rig.queue.enqueue(requestOf(2 * round));
    await rig.server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    rig.queue.enqueue(requestOf(2 * round + 1));
  }
  const all = Array.from({ length: 40 }, (_, index) => index);
  await until('read', () => new Set(rig.numbers()).size === all.length);
  expect([...new Set(rig.numbers())].sort((a, b) => a - b)).toEqual(all);
}, 20_000);

test('a reader outlives a Redis that stands still', async () => {
  const reader = rig.read();
  rig.queue.enqueue(requestOf(1));
  await until('read', () => rig.seen.length === 1);
  rig.server.pause();
  rig.queue.enqueue(requestOf(2));
  await until('given up', () => rig.queue.counters.failures > 0);
  rig.server.resume();
  await until('read', () => rig.numbers().includes(2));
  await reader.stop();
}, 20_000);
