/**
 * Membership in Redis: a hash of what members say of themselves and a sorted set of when each one's word ends, by the
 * clock of Redis. A Redis that was stopped, lost its data, or whose clock jumped forgets members that live; so after such
 * an interruption whoever was there before stays for one ttl more, by our own clock, in which a living one beats again.
 */
import type { Clock } from '@paceline/clock';
import type { CommonSettings, Member, MemberRole } from '@paceline/protocol';
import { RedisScript, type RedisConnection, type RedisKeys } from '@paceline/redis';
import type { Membership } from '../ports.js';
import { parseRecord, unexpectedReply } from './reply.js';

/** No ttl may be longer: it bounds how long the dead stay when the clock of Redis is set back. */
const MAX_TTL_MS = 60_000;

/**
 * The field '' of the hash says since when it exists, so that all see that the data is new. Replies with the time and
 * with fields and values in turn.
 */
const BEAT = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], now + ${MAX_TTL_MS}, '+inf')) do gone[#gone + 1] = id end
for _, id in ipairs(gone) do
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[1], id)
end
redis.call('HSETNX', KEYS[1], '', time[1] .. '.' .. time[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ${MAX_TTL_MS})
redis.call('PEXPIRE', KEYS[2], ${MAX_TTL_MS})
return {string.format('%.0f', now), redis.call('HGETALL', KEYS[1])}
`);

/** Replies with the records of those whose time is not over. */
const LOOK = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. string.format('%.0f', now), string.format('%.0f', now + ${MAX_TTL_MS}))
if #ids == 0 then return {} end
return redis.call('HMGET', KEYS[1], unpack(ids))
`);

const LEAVE = new RedisScript(`
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
if redis.call('ZCARD', KEYS[2]) == 0 then redis.call('DEL', KEYS[1]) end
return 1
`);

interface Known {
  readonly member: Member;
  /** Of one that the store does not know and that perhaps only an interruption took away. */
  readonly heldUntilUs: number | undefined;
}

export class RedisMembership implements Membership {
  readonly #keys: readonly string[];
  /** By the text they came in: most beats say what the last one said. */
  #parsed = new Map<string, Member | undefined>();
  /** Those that were there at the last beat. */
  #known = new Map<string, Known>();
  #last: { readonly nowUs: number; readonly storeMs: number; readonly since: string } | undefined;

  constructor(
    private readonly connection: RedisConnection,
    keys: RedisKeys,
    private readonly clock: Clock,
  ) {
    this.#keys = [keys.members.records, keys.members.expiry];
  }

  async beat(self: Member, ttlMs: number): Promise<readonly Member[]> {
    const reply = await this.connection.run(BEAT, this.#keys, [self.id, JSON.stringify(self), Math.min(ttlMs, MAX_TTL_MS - 1)]);
    if (!Array.isArray(reply) || !Array.isArray(reply[1])) throw unexpectedReply('beat', reply);
    const { since, members } = this.#read(reply[1].map(String));
    const nowUs = this.clock.nowUs();
    const interrupted = this.#wasInterrupted({ nowUs, storeMs: Number(reply[0]), since }, ttlMs);
    const known = new Map<string, Known>(members.map((member) => [member.id, { member, heldUntilUs: undefined }]));
    for (const [id, { member, heldUntilUs }] of this.#known) {
      if (known.has(id)) continue;
      const until = interrupted ? nowUs + ttlMs * 1000 : heldUntilUs;
      if (until !== undefined && until > nowUs) known.set(id, { member, heldUntilUs: until });
    }
    this.#known = known;
    return [...known.values()].map(({ member }) => member);
  }

  async look(): Promise<readonly Member[]> {
    const reply = await this.connection.run(LOOK, this.#keys, []);
    if (!Array.isArray(reply)) throw unexpectedReply('look', reply);
    return reply.filter((text) => typeof text === 'string').flatMap((text) => parseMember(text) ?? []);
  }

  async leave(self: Member): Promise<void> {
    await this.connection.run(LEAVE, this.#keys, [self.id]);
  }

  #read(fields: readonly string[]): { since: string; members: readonly Member[] } {
    let since = '';
    const parsed = new Map<string, Member | undefined>();
    for (let index = 0; index < fields.length; index += 2) {
      const text = fields[index + 1] ?? '';
      if (fields[index] === '') since = text;
      else parsed.set(text, this.#parsed.get(text) ?? parseMember(text));
    }
    this.#parsed = parsed;
    return { since, members: [...parsed.values()].filter((member) => member !== undefined) };
  }

  /** Whether living members may have missed their time: the store was away or is new, or its clock went another way than ours. */
  #wasInterrupted(beat: { nowUs: number; storeMs: number; since: string }, ttlMs: number): boolean {
    const last = this.#last;
    this.#last = beat;
    if (!last) return false;
    const passedMs = (beat.nowUs - last.nowUs) / 1000;
    return beat.since !== last.since || passedMs > ttlMs / 2 || Math.abs(beat.storeMs - last.storeMs - passedMs) > ttlMs / 2;
  }
}

const ROLES: ReadonlySet<unknown> = new Set<MemberRole>(['gateway', 'scheduler', 'worker']);

/** Undefined for what is no member as this version knows them: another version's must not end everybody's heartbeat. */
function parseMember(text: string): Member | undefined {
  const { role, id, address, draining, common } = parseRecord(text) ?? {};
  if (!ROLES.has(role) || typeof id !== 'string' || typeof address !== 'string' || typeof draining !== 'boolean') return undefined;
  const settings = commonOf(common);
  return { role: role as MemberRole, id, address, draining, ...(settings && { common: settings }) };
}

function commonOf(value: unknown): CommonSettings | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { partitions, secretMark } = value as Partial<Record<keyof CommonSettings, unknown>>;
  return typeof partitions === 'number' && typeof secretMark === 'string' ? { partitions, secretMark } : undefined;
}
