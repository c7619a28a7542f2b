// Both adapters give the same answers to the same random course of leases, losses of all data included.
import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { connectRedis, LEASE_STATE, RedisKeys, type RedisConnection } from '@paceline/redis';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { InMemoryClusterState } from './memory.js';
import type { Leases } from './ports.js';
import { RedisLeases } from './redis/leases.js';

const STEPS = 2000;
const LONG_MS = 60_000;
const NAMES = ['p0', 'p1', 'placement'];
const OWNERS = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb', 'cccccccccccccccc'];

let server: RedisServer;
let connection: RedisConnection;

beforeAll(async () => {
  server = await startRedis();
  connection = connectRedis({ mode: 'standalone', urls: [server.url], name: 'test' });
  await connection.whenUp(10_000);
});

afterAll(async () => {
  connection.close();
  await server.stop();
});

test('leases', async () => {
  const seed = Number(process.env['SIM_SEED'] ?? randomInt(1, 2 ** 31));
  const random = generator(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const keys = new RedisKeys('test');
  const redis = new RedisLeases(connection, keys);
  const memory = new InMemoryClusterState(new FakeClock());
  const course: string[] = [];

  for (let step = 0; step < STEPS; step++) {
    const name = pick(NAMES);
    const owner = pick(OWNERS);
    const chance = random();
    if (chance < 0.01) {
      memory.clear();
      await connection.command('FLUSHALL');
      course.push('lost');
    } else if (chance < 0.1) {
      const cursor = `${step}-0`;
      // Only an owner takes entries in, so there is a record.
      if (!(await memory.leases.renew(name, owner, LONG_MS))) continue;
      memory.setCursor(name, cursor);
      await connection.command('HSET', keys.lease(name).state, LEASE_STATE.cursor, cursor);
      course.push(`${name} cursor ${cursor}`);
    } else {
      const above = chance < 0.4 ? Math.floor(random() * 50) : 0;
      const ask = (leases: Leases): Promise<unknown> => {
        if (chance < 0.5) return leases.acquire(name, owner, LONG_MS, above);
        return chance < 0.75 ? leases.renew(name, owner, LONG_MS) : leases.release(name, owner);
      };
      const [one, other] = [await ask(memory.leases), await ask(redis)];
      course.push(`${name} ${owner[0]} ${chance < 0.5 ? `acquire ${above}` : chance < 0.75 ? 'renew' : 'release'}: ${JSON.stringify(one)}`);
      if (!isEqual(one, other)) throw new Error(`SIM_SEED=${seed}, Redis: ${JSON.stringify(other)}\n${course.slice(-20).join('\n')}`);
    }
  }
  // Both ways have been gone often.
  for (const part of ['lost', 'cursor', '"ok":false', '"fresh":true', 'renew: true', 'renew: false']) {
    expect({ seed, part, seen: course.some((line) => line.includes(part)) }).toEqual({ seed, part, seen: true });
  }
});

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Mulberry32: numbers from 0 to 1. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
