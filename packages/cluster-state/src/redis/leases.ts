/**
 * Leases in Redis: a string with a time to live says who holds one, a hash beside it keeps the epoch and the cursor for
 * whoever comes next. Each operation is one script, so it happens whole or not at all.
 */
import { LEASE_STATE, RedisScript, type RedisConnection, type RedisKeys } from '@paceline/redis';
import type { Acquired, Leases } from '../ports.js';
import { unexpectedReply } from './reply.js';

/** A lease that seems to last longer than it was granted for is one whose Redis had its clock set back: it is cut to that. */
const ACQUIRE = new RedisScript(`
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  local granted = redis.call('HGET', KEYS[2], '${LEASE_STATE.ttlMs}')
  if granted and redis.call('PTTL', KEYS[1]) > tonumber(granted) then redis.call('PEXPIRE', KEYS[1], granted) end
  return {0, held}
end
local known = redis.call('HGET', KEYS[2], '${LEASE_STATE.epoch}')
local epoch = string.format('%.0f', math.max(tonumber(known or '0'), tonumber(ARGV[3])) + 1)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], '${LEASE_STATE.epoch}', epoch, '${LEASE_STATE.ttlMs}', ARGV[2])
return {1, epoch, redis.call('HGET', KEYS[2], '${LEASE_STATE.cursor}') or '0-0', known and 0 or 1}
`);

const RENEW = new RedisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('HGET', KEYS[2], '${LEASE_STATE.ttlMs}') ~= ARGV[2] then redis.call('HSET', KEYS[2], '${LEASE_STATE.ttlMs}', ARGV[2]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`);

const RELEASE = new RedisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`);

export class RedisLeases implements Leases {
  constructor(
    private readonly connection: RedisConnection,
    private readonly keys: RedisKeys,
  ) {}

  async acquire(name: string, owner: string, ttlMs: number, above: number): Promise<Acquired> {
    const keys = this.keys.lease(name);
    const reply = await this.connection.run(ACQUIRE, [keys.owner, keys.state], [owner, ttlMs, above]);
    if (!Array.isArray(reply)) throw unexpectedReply('acquire', reply);
    const [ok, first, cursor, fresh] = reply as unknown[];
    if (ok !== 1) return { ok: false, owner: String(first) };
    return { ok: true, epoch: { number: Number(first), owner }, cursor: String(cursor), fresh: fresh === 1 };
  }

  async renew(name: string, owner: string, ttlMs: number): Promise<boolean> {
    const keys = this.keys.lease(name);
    return (await this.connection.run(RENEW, [keys.owner, keys.state], [owner, ttlMs])) === 1;
  }

  async release(name: string, owner: string): Promise<void> {
    await this.connection.run(RELEASE, [this.keys.lease(name).owner], [owner]);
  }
}
