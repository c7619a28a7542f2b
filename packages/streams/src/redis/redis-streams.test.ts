// Gateways and a scheduler joined through a real Redis and real links keep the contract; and what only Redis brings about.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { until } from '@paceline/link/testing';
import { ServingError, type Envelope, type GatewayMessage, type ReplyFrame } from '@paceline/protocol';
import { connectRedis, LEASE_STATE, RedisKeys, type RedisConnection } from '@paceline/redis';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { createGatewayLinks } from '../link/gateway-links.js';
import { createSchedulerLinks } from '../link/scheduler-links.js';
import { describeStreams, SchedulerReports } from '../testing/index.js';
import { PartitionReader } from './partition-reader.js';
import { RedisRequestQueue, type RedisRequestQueueOptions } from './redis-request-queue.js';

const A = 'aaaaaaaaaaaaaaaa';
const S = 'cccccccccccccccc';
/** A cursor that no stream has reached. */
const FUTURE = '99999999999999-0';
const SECRET = Buffer.from('secret of the cluster');

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

async function connect(): Promise<RedisConnection> {
  const redis = connectRedis({ mode: 'standalone', urls: [server.url], name: 'test' });
  await redis.whenUp(5000);
  return redis;
}

function requestOf(number: number, more: Partial<Envelope> = {}): Envelope {
  return {
    ref: { gateway: A, number },
    model: 'm',
    version: '1',
    clientId: '',
    rows: 1,
    priority: 0,
    timeoutUs: 0,
    shapeKey: '',
    inputs: [{ name: 'IN', datatype: 'UINT8', shape: [1, 3], data: Uint8Array.of(number, 0, 255) }],
    outputs: ['OUT'],
    ...more,
  };
}

describeStreams('Redis and links', async (intake, gateways) => {
  const redis = await connect();
  await redis.command('FLUSHALL');
  const keys = new RedisKeys('test');
  const partition = keys.partition(0);
  await redis.command('SET', partition.owner, S);
  let cancels = 0;
  const reports = new SchedulerReports();
  reports.onGatewayMessage = (gateway: string, message: GatewayMessage) => {
    cancels++;
    if (message.kind === 'cancel') intake.onCancel({ gateway, number: message.number }, message.model, message.version);
  };
  const scheduler = createSchedulerLinks({ clock: systemClock, id: S, secret: SECRET }, reports);
  const reader = new PartitionReader({ clock: systemClock, redis, keys: partition, owner: S, intake });
  reader.start({ cursor: '0-0' });
  let frames = 0;
  let sent = 0;
  let told = 0;
  const queues = new Map<string, RedisRequestQueue>();
  const closers: (() => Promise<void>)[] = [];
  const members = [];
  for (const [id, listener] of gateways) {
    const onFrame = (number: number, frame: ReplyFrame): void => {
      frames++;
      listener(number, frame);
    };
    const links = createGatewayLinks(
      { clock: systemClock, id, secret: SECRET },
      {
        onFrame,
        onLost: () => undefined,
        tensorsOf: () => undefined,
        onSchedulerUp: () => undefined,
        onSchedulerDown: () => undefined,
        onSchedulerMessage: () => undefined,
      },
    );
    const { port } = await links.listen('127.0.0.1', 0);
    members.push({ role: 'gateway', id, address: `127.0.0.1:${port}`, draining: false } as const);
    closers.push(() => links.close());
    const counted = {
      schedulers: links.schedulers,
      tell: (to: string, message: GatewayMessage) => {
        told++;
        links.tell(to, message);
      },
    };
    const options = { clock: systemClock, redis, keys, inlineBytes: 4096, partitionOf: () => 0, ownerOf: () => S, links: counted, onFrame };
    queues.set(id, new RedisRequestQueue(options));
  }
  scheduler.setMembers(members);
  await until('the scheduler is joined', () => scheduler.gateways.length === gateways.size);
  let enqueued = 0;
  for (const queue of queues.values()) {
    const { enqueue } = queue;
    queue.enqueue = (envelope) => {
      enqueued++;
      enqueue.call(queue, envelope);
    };
  }
  return {
    queues,
    replies: {
      send(ref, frame) {
        if (gateways.has(ref.gateway)) sent++;
        scheduler.send(ref, frame);
      },
    },
    async settle() {
      await until('requests have arrived', () => reader.counters.requests === enqueued);
      await until('replies have arrived', () => frames === sent);
      await until('cancellations have been told', () => cancels === told);
    },
    async close() {
      await reader.stop();
      for (const queue of queues.values()) queue.close();
      await scheduler.close();
      for (const close of closers) await close();
      redis.close();
    },
  };
});

describe('requests through Redis', () => {
  const keys = new RedisKeys('own');
  const partition = keys.partition(0);
  let redis: RedisConnection;
  let queue: RedisRequestQueue;
  let readers: PartitionReader[];
  let seen: Envelope[];
  let cancelled: GatewayMessage[];
  let frames: [number, ReplyFrame][];
  let problems: string[];

  beforeEach(async () => {
    redis = await connect();
    await redis.command('FLUSHALL');
    await redis.command('SET', partition.owner, S);
    readers = [];
    seen = [];
    cancelled = [];
    frames = [];
    problems = [];
    queue = queueOf({});
  });
  afterEach(async () => {
    server.resume();
    await server.start();
    queue.close();
    for (const reader of readers) await reader.stop();
    redis.close();
  });

  function queueOf(options: Partial<RedisRequestQueueOptions>): RedisRequestQueue {
    return new RedisRequestQueue({
      clock: systemClock,
      redis,
      keys,
      inlineBytes: 4096,
      partitionOf: () => 0,
      ownerOf: () => S,
      links: { schedulers: [S], tell: (_, message) => void cancelled.push(message) },
      onFrame: (number, frame) => void frames.push([number, frame]),
      onProblem: (problem) => void problems.push(problem),
      ...options,
    });
  }

  function read(cursor = '0-0', blockMs = 100): PartitionReader {
    const intake = { onEnvelope: (envelope: Envelope) => void seen.push(envelope), onCancel: () => undefined };
    const onProblem = (problem: string): void => void problems.push(problem);
    const reader = new PartitionReader({ clock: systemClock, redis, keys: partition, owner: S, intake, blockMs, onProblem });
    readers.push(reader);
    reader.start({ cursor });
    return reader;
  }

  const numbers = (): number[] => seen.map(({ ref }) => ref.number);
  const length = async (): Promise<number> => Number(await redis.command('XLEN', partition.in));
  async function untilAsync(what: string, holds: () => Promise<boolean>): Promise<void> {
    const endMs = performance.now() + 5000;
    while (!(await holds())) if (performance.now() > endMs) throw new Error(`not within 5 s: ${what}`);
  }

  test('what is enqueued in one turn makes one entry, and at most 256 requests go into one', async () => {
    for (let number = 1; number <= 300; number++) queue.enqueue(requestOf(number));
    await until('written', () => queue.counters.requests === 300);
    expect(queue.counters.entries).toBe(2);
    expect(await length()).toBe(2);
    read();
    await until('read', () => seen.length === 300);
    expect(numbers()).toEqual(Array.from({ length: 300 }, (_, index) => index + 1));
  });

  test('large inputs stay with the gateway, all together, and can be fetched until the answer', async () => {
    read();
    const inputs = [1, 2].map(
      (fill) => ({ name: `IN${fill}`, datatype: 'UINT8', shape: [1, 3000], data: new Uint8Array(3000).fill(fill) }) as const,
    );
    queue.enqueue(requestOf(1, { inputs }));
    queue.enqueue(requestOf(2, { inputs: inputs.slice(0, 1) }));
    await until('read', () => seen.length === 2);
    expect(seen[0]!.heldBytes).toBe(6000);
    expect(seen[0]!.inputs.map(({ name, shape, data }) => [name, shape, data.length])).toEqual([
      ['IN1', [1, 3000], 0],
      ['IN2', [1, 3000], 0],
    ]);
    expect(seen[1]!.heldBytes).toBeUndefined();
    expect(seen[1]!.inputs[0]!.data).toHaveLength(3000);
    expect(queue.tensorsOf(1)).toBe(inputs);
    queue.forget({ gateway: A, number: 1 });
    expect(queue.tensorsOf(1)).toBeUndefined();
  });

  test('at rest the stream is empty and the lease knows where reading stopped; the next owner goes on there', async () => {
    const reader = read();
    for (let number = 1; number <= 10; number++) queue.enqueue(requestOf(number));
    await until('read', () => seen.length === 10);
    await untilAsync('trimmed', async () => (await length()) === 0);
    await reader.stop();
    expect(await redis.command('HGET', partition.state, LEASE_STATE.cursor)).toBe(reader.cursor);
    queue.enqueue(requestOf(11));
    await until('written', () => queue.counters.requests === 11);
    read(reader.cursor);
    await until('read', () => seen.length === 11);
    expect(numbers().at(-1)).toBe(11);
  });

  test('stopping reports the last cursor, and ends a read that blocks', async () => {
    const reader = read('0-0', 60_000);
    queue.enqueue(requestOf(1));
    await until('read', () => seen.length === 1);
    await reader.stop();
    expect(await length()).toBe(0);
    expect(await redis.command('HGET', partition.state, LEASE_STATE.cursor)).toBe(reader.cursor);
  });

  test('who is not the owner any more trims nothing and stops reading', async () => {
    read();
    await redis.command('SET', partition.owner, 'somebody else');
    queue.enqueue(requestOf(1));
    await until('read', () => seen.length === 1);
    await readers[0]!.stop();
    expect(await length()).toBe(1);
    expect(await redis.command('HGET', partition.state, LEASE_STATE.cursor)).toBeNull();
  });

  test('a new owner gets what is unanswered again, once for each epoch, and with the same attempt', async () => {
    read();
    for (let number = 1; number <= 3; number++) queue.enqueue(requestOf(number));
    await until('read', () => seen.length === 3);
    queue.forget({ gateway: A, number: 2 });
    queue.onOwner(0, { number: 5, owner: S });
    await until('read again', () => seen.length === 5);
    queue.onOwner(0, { number: 5, owner: S });
    queue.onOwner(0, { number: 4, owner: S });
    queue.onOwner(1, { number: 9, owner: S });
    queue.enqueue(requestOf(4));
    await until('read', () => numbers().includes(4));
    expect(numbers()).toEqual([1, 2, 3, 1, 3, 4]);
    expect(seen.every(({ attempt }) => attempt === undefined)).toBe(true);
    expect(queue.counters.resent).toBe(2);
  });

  test('a lost request is handed over again as another attempt, until it had begun twice', async () => {
    read();
    const error = new ServingError('UNAVAILABLE', 'worker gone', { reason: 'batch_lost' });
    queue.enqueue(requestOf(1));
    await until('read', () => seen.length === 1);
    queue.onLost(1, 1, false, error);
    queue.onLost(1, 1, true, error);
    await until('read', () => seen.length === 2);
    queue.onLost(1, 2, true, error);
    await until('read', () => seen.length === 3);
    expect(seen.map(({ attempt }) => attempt)).toEqual([undefined, 2, 3]);
    queue.onLost(1, 3, true, error);
    expect(frames).toEqual([[1, { ok: false, final: true, error }]]);
    queue.onLost(1, 3, true, error);
    expect(frames).toHaveLength(1);
    expect(queue.unanswered).toBe(0);
  });

  test('a cancellation follows its request, goes to the owner, and to everyone where none is known', async () => {
    const told: string[] = [];
    let owner: string | undefined = S;
    const own = queueOf({
      ownerOf: () => owner,
      links: { schedulers: ['x', 'y'], tell: (to, message) => void told.push(`${to} ${message.kind} at ${own.counters.requests}`) },
    });
    own.enqueue(requestOf(1));
    await new Promise((resolve) => setImmediate(resolve));
    own.cancel({ gateway: A, number: 1 });
    own.forget({ gateway: A, number: 1 });
    expect(told).toEqual([]);
    own.enqueue(requestOf(9));
    own.cancel({ gateway: A, number: 9 });
    await until('told', () => told.length === 1);
    own.enqueue(requestOf(2));
    await until('written', () => own.counters.requests === 2);
    owner = undefined;
    own.cancel({ gateway: A, number: 2 });
    expect(told).toEqual([`${S} cancel at 1`, 'x cancel at 2', 'y cancel at 2']);
    own.close();
  });

  test('an entry that cannot be decoded is set aside with the reason, and those behind it are read', async () => {
    const reader = read();
    const bad = String(await redis.command('XADD', partition.in, '*', 'e', Buffer.from([1, 1, 0, 0, 0, 0, 2])));
    await redis.command('XADD', partition.in, '*', 'other', 'field');
    queue.enqueue(requestOf(1));
    await until('read', () => seen.length === 1);
    expect(reader.counters).toEqual({ entries: 3, requests: 1, undecodable: 2 });
    await untilAsync('set aside', async () => Number(await redis.command('XLEN', partition.dead)) === 2);
    const [[, fields]] = (await redis.command('XRANGE', partition.dead, '-', '+')) as [[string, string[]]];
    expect(fields.slice(0, 6)).toEqual(['id', bad, 'reason', expect.stringContaining('gateway: needs 2 bytes'), 'size', '7']);
    expect(problems).toEqual([expect.stringContaining(`entry ${bad} of ${partition.in}`), expect.stringContaining('other fields')]);
  });

  test('the time in the stream is taken off the queue timeout, and one that is used up is not taken for none', async () => {
    for (const [number, timeoutUs] of [0, 1, 60_000_000].entries()) queue.enqueue(requestOf(number, { timeoutUs }));
    await until('written', () => queue.counters.requests === 3);
    const [[id]] = (await redis.command('XRANGE', partition.in, '-', '+')) as [[string]];
    // The entry is made older than it is by an id of its own: by ten seconds of Redis' clock.
    const bytes = ((await redis.commandBuffer('XRANGE', partition.in, '-', '+')) as [[Buffer, Buffer[]]])[0][1][1]!;
    await redis.command('DEL', partition.in);
    await redis.command('XADD', partition.in, `${Number.parseInt(id, 10) - 10_000}-0`, 'e', bytes);
    // What time it is at Redis must be known before: the first entry of a reader that just began may come too early.
    const reader = read(FUTURE);
    await until('the cursor was found to be beyond the stream', () => seen.length === 3);
    await reader.stop();
    expect(seen.map(({ timeoutUs }) => timeoutUs)).toEqual([0, 1, expect.any(Number)]);
    expect(seen[2]!.timeoutUs).toBeGreaterThan(45_000_000);
    expect(seen[2]!.timeoutUs).toBeLessThanOrEqual(50_000_000);
  });

  test('a Redis that comes back empty loses nothing: the gateway sends again, the reader starts at its beginning', async () => {
    const before = read();
    queue.enqueue(requestOf(1));
    await until('read', () => seen.length === 1);
    await server.kill();
    await until('noticed', () => !redis.up);
    queue.enqueue(requestOf(2));
    await until('told', () => problems.some((problem) => problem.startsWith('requests cannot be handed over')));
    expect(queue.waiting).toBe(1);
    await server.start();
    await redis.whenUp(5000);
    // As the scheduler does that had the lease: it acquires it again.
    await before.stop();
    await redis.command('SET', partition.owner, S);
    read(before.cursor);
    await until('read', () => numbers().includes(2) && numbers().filter((number) => number === 1).length >= 2);
    await until('told', () => problems.includes('requests are handed over through Redis again'));
    expect(queue.counters.failures).toBeGreaterThan(0);
  }, 20_000);

  test('a full Redis makes requests wait, and is tried again until there is room', async () => {
    read();
    queue.enqueue(requestOf(1));
    await until('read', () => seen.length === 1);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    queue.enqueue(requestOf(2));
    await until('told', () => problems.length > 0);
    expect(problems).toEqual([expect.stringContaining('maxmemory')]);
    await until('tried again', () => queue.counters.failures >= 2);
    expect(numbers()).toEqual([1]);
    // One that is answered meanwhile, by its deadline, is not written any more.
    queue.enqueue(requestOf(3));
    queue.forget({ gateway: A, number: 3 });
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await until('read', () => seen.length === 2);
    queue.enqueue(requestOf(4));
    await until('read', () => seen.length === 3);
    expect(numbers()).toEqual([1, 2, 4]);
    expect(queue.counters.resent).toBe(0);
  });

  test('at the memory limit the cursor still moves and the stream is still trimmed', async () => {
    queue.enqueue(requestOf(1));
    await until('written', () => queue.counters.requests === 1);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    read();
    await until('read', () => seen.length === 1);
    await untilAsync('trimmed', async () => (await length()) === 0);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  });

  test('twenty cut connections lose nothing', async () => {
    read();
    for (let round = 0; round < 20; round++) {
      queue.enqueue(requestOf(2 * round));
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      queue.enqueue(requestOf(2 * round + 1));
    }
    const all = Array.from({ length: 40 }, (_, index) => index);
    await until('read', () => new Set(numbers()).size === all.length);
    expect([...new Set(numbers())].sort((a, b) => a - b)).toEqual(all);
  }, 20_000);

  test('a reader outlives a Redis that stands still', async () => {
    const reader = read();
    queue.enqueue(requestOf(1));
    await until('read', () => seen.length === 1);
    server.pause();
    queue.enqueue(requestOf(2));
    await until('given up', () => queue.counters.failures > 0);
    server.resume();
    await until('read', () => numbers().includes(2));
    await reader.stop();
  }, 20_000);
});
