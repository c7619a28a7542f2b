// What a gateway hands over through Redis, and what a scheduler reads of it.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { until } from '@paceline/link/testing';
import { ServingError } from '@paceline/protocol';
import { LEASE_STATE } from '@paceline/redis';
import { GATEWAY, OWNER, RedisRig, requestOf, untilAsync } from './testing/redis-rig.js';

/** A cursor that no stream has reached. */
const FUTURE = '99999999999999-0';

let rig: RedisRig;
beforeEach(async () => {
  rig = await RedisRig.open();
});
afterEach(() => rig.close());

test('what is enqueued in one turn makes one entry, and at most 256 requests go into one', async () => {
  for (let number = 1; number <= 300; number++) rig.queue.enqueue(requestOf(number));
  await until('written', () => rig.queue.counters.requests === 300);
  expect(rig.queue.counters.entries).toBe(2);
  expect(await rig.length()).toBe(2);
  rig.read();
  await until('read', () => rig.seen.length === 300);
  expect(rig.numbers()).toEqual(Array.from({ length: 300 }, (_, index) => index + 1));
});

test('large inputs stay with the gateway, all together, and can be fetched until the answer', async () => {
  rig.read();
  const inputs = [1, 2].map(
    (fill) => ({ name: `IN${fill}`, datatype: 'UINT8', shape: [1, 3000], data: new Uint8Array(3000).fill(fill) }) as const,
  );
  rig.queue.enqueue(requestOf(1, { inputs }));
  rig.queue.enqueue(requestOf(2, { inputs: inputs.slice(0, 1) }));
  await until('read', () => rig.seen.length === 2);
  expect(rig.seen[0]!.heldBytes).toBe(6000);
  expect(rig.seen[0]!.inputs.map(({ name, shape, data }) => [name, shape, data.length])).toEqual([
    ['IN1', [1, 3000], 0],
    ['IN2', [1, 3000], 0],
  ]);
  expect(rig.seen[1]!.heldBytes).toBeUndefined();
  expect(rig.seen[1]!.inputs[0]!.data).toHaveLength(3000);
  expect(rig.queue.tensorsOf(1)).toBe(inputs);
  rig.queue.forget({ gateway: GATEWAY, number: 1 });
  expect(rig.queue.tensorsOf(1)).toBeUndefined();
});

test('at rest the stream is empty and the lease knows where reading stopped; the next owner goes on there', async () => {
  const reader = rig.read();
  for (let number = 1; number <= 10; number++) rig.queue.enqueue(requestOf(number));
  await until('read', () => rig.seen.length === 10);
  await untilAsync('trimmed', async () => (await rig.length()) === 0);
  await reader.stop();
  expect(await rig.redis.command('HGET', rig.partition.state, LEASE_STATE.cursor)).toBe(reader.cursor);
  rig.queue.enqueue(requestOf(11));
  await until('written', () => rig.queue.counters.requests === 11);
  rig.read(reader.cursor);
  await until('read', () => rig.seen.length === 11);
  expect(rig.numbers().at(-1)).toBe(11);
});

test('stopping reports the last cursor, and ends a read that blocks', async () => {
  const reader = rig.read('0-0', 60_000);
  rig.queue.enqueue(requestOf(1));
  await until('read', () => rig.seen.length === 1);
  await reader.stop();
  expect(await rig.length()).toBe(0);
  expect(await rig.redis.command('HGET', rig.partition.state, LEASE_STATE.cursor)).toBe(reader.cursor);
});

test('a new owner gets what is unanswered again, once for each epoch, and with the same attempt', async () => {
  rig.read();
  for (let number = 1; number <= 3; number++) rig.queue.enqueue(requestOf(number));
  await until('read', () => rig.seen.length === 3);
  rig.queue.forget({ gateway: GATEWAY, number: 2 });
  rig.queue.onOwner(0, { number: 5, owner: OWNER });
  await until('read again', () => rig.seen.length === 5);
  rig.queue.onOwner(0, { number: 5, owner: OWNER });
  rig.queue.onOwner(0, { number: 4, owner: OWNER });
  rig.queue.onOwner(1, { number: 9, owner: OWNER });
  rig.queue.enqueue(requestOf(4));
  await until('read', () => rig.numbers().includes(4));
  expect(rig.numbers()).toEqual([1, 2, 3, 1, 3, 4]);
  expect(rig.seen.every(({ attempt }) => attempt === undefined)).toBe(true);
  expect(rig.queue.counters.resent).toBe(2);
});

test('a lost request is handed over again as another attempt, until it had begun twice', async () => {
  rig.read();
  const error = new ServingError('UNAVAILABLE', 'worker gone', { reason: 'batch_lost' });
  rig.queue.enqueue(requestOf(1));
  await until('read', () => rig.seen.length === 1);
  rig.queue.onLost(1, 1, false, error);
  rig.queue.onLost(1, 1, true, error);
  await until('read', () => rig.seen.length === 2);
  rig.queue.onLost(1, 2, true, error);
  await until('read', () => rig.seen.length === 3);
  expect(rig.seen.map(({ attempt }) => attempt)).toEqual([undefined, 2, 3]);
  rig.queue.onLost(1, 3, true, error);
  expect(rig.frames).toEqual([[1, { ok: false, final: true, error }]]);
  rig.queue.onLost(1, 3, true, error);
  expect(rig.frames).toHaveLength(1);
  expect(rig.queue.unanswered).toBe(0);
});

test('a cancellation follows its request, goes to the owner, and to everyone where none is known', async () => {
  const told: string[] = [];
  let owner: string | undefined = OWNER;
  const own = rig.queueOf({
    ownerOf: () => owner,
    links: { schedulers: ['x', 'y'], tell: (to, message) => void told.push(`${to} ${message.kind} at ${own.counters.requests}`) },
  });
  own.enqueue(requestOf(1));
  await new Promise((resolve) => setImmediate(resolve));
  own.cancel({ gateway: GATEWAY, number: 1 });
  own.forget({ gateway: GATEWAY, number: 1 });
  expect(told).toEqual([]);
  own.enqueue(requestOf(9));
  own.cancel({ gateway: GATEWAY, number: 9 });
  await until('told', () => told.length === 1);
  own.enqueue(requestOf(2));
  await until('written', () => own.counters.requests === 2);
  owner = undefined;
  own.cancel({ gateway: GATEWAY, number: 2 });
  expect(told).toEqual([`${OWNER} cancel at 1`, 'x cancel at 2', 'y cancel at 2']);
  own.close();
});

test('an entry that cannot be decoded is set aside with the reason, and those behind it are read', async () => {
  const reader = rig.read();
  const bad = String(await rig.redis.command('XADD', rig.partition.in, '*', 'e', Buffer.from([1, 1, 0, 0, 0, 0, 2])));
  await rig.redis.command('XADD', rig.partition.in, '*', 'other', 'field');
  rig.queue.enqueue(requestOf(1));
  await until('read', () => rig.seen.length === 1);
  expect(reader.counters).toEqual({ entries: 3, requests: 1, undecodable: 2 });
  await untilAsync('set aside', async () => Number(await rig.redis.command('XLEN', rig.partition.dead)) === 2);
  const [[, fields]] = (await rig.redis.command('XRANGE', rig.partition.dead, '-', '+')) as [[string, string[]]];
  expect(fields.slice(0, 6)).toEqual(['id', bad, 'reason', expect.stringContaining('gateway: needs 2 bytes'), 'size', '7']);
  expect(rig.problems).toEqual([expect.stringContaining(`entry ${bad} of ${rig.partition.in}`), expect.stringContaining('other fields')]);
});

test('the time in the stream is taken off the times of a request, and a timeout that is used up is not taken for none', async () => {
  for (const [number, timeoutUs] of [0, 1, 60_000_000].entries())
    rig.queue.enqueue(requestOf(number, { timeoutUs, remainingUs: 20_000_000 - number * 11_000_000 }));
  await until('written', () => rig.queue.counters.requests === 3);
  const [[id]] = (await rig.redis.command('XRANGE', rig.partition.in, '-', '+')) as [[string]];
  // The entry is made older than it is by an id of its own: by ten seconds of Redis' clock.
  const bytes = ((await rig.redis.commandBuffer('XRANGE', rig.partition.in, '-', '+')) as [[Buffer, Buffer[]]])[0][1][1]!;
  await rig.redis.command('DEL', rig.partition.in);
  await rig.redis.command('XADD', rig.partition.in, `${Number.parseInt(id, 10) - 10_000}-0`, 'e', bytes);
  // What time it is at Redis must be known before: the first entry of a reader that just began may come too early.
  const reader = rig.read(FUTURE);
  await until('the cursor was found to be beyond the stream', () => rig.seen.length === 3);
  await reader.stop();
  expect(rig.seen.map(({ timeoutUs }) => timeoutUs)).toEqual([0, 1, expect.any(Number)]);
  expect(rig.seen[2]!.timeoutUs).toBeGreaterThan(45_000_000);
  expect(rig.seen[2]!.timeoutUs).toBeLessThanOrEqual(50_000_000);
  const [long = 0, ...short] = rig.seen.map(({ remainingUs }) => remainingUs);
  expect(long > 5_000_000 && long <= 10_000_000).toBe(true);
  expect(short).toEqual([0, 0]);
});
