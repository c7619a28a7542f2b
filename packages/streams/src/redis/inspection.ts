/**
 * Looks at the partitions from outside, for people who want to know what waits, who reads, and what could not be read.
 * Invariant: it changes nothing, and asks for the content only of entries that were set aside.
 */
import { LEASE_STATE, RedisScript, type PartitionKeys, type RedisConnection } from '@paceline/redis';

export interface InspectedPartition {
  /** Id of the scheduler that holds the lease; undefined = nobody reads. */
  readonly owner: string | undefined;
  /** Of the last acquisition; 0 = there never was one. */
  readonly epoch: number;
  /** What is left of the lease, milliseconds; 0 where nobody holds it. */
  readonly leaseMs: number;
  /** Id of the last entry that was read. */
  readonly cursor: string;
  /** Entries that were not read yet. */
  readonly entries: number;
  /** For how long the oldest of them has waited, milliseconds by the clock of Redis; 0 = none waits. */
  readonly lagMs: number;
  /** Entries that were set aside because they cannot be decoded. */
  readonly dead: number;
}

/** An entry that could not be decoded. */
export interface DeadEntry {
  /** Of the stream it was in. */
  readonly entry: string;
  /** Milliseconds since the epoch, by the clock of Redis. */
  readonly setAsideMs: number;
  /** What is wrong with it, and at which byte. */
  readonly reason: string;
  /** Of the whole entry, bytes. */
  readonly size: number;
  /** The first 16 KiB of it. */
  readonly bytes: Buffer;
}

/** KEYS owner, state, stream, dead; what was read is trimmed, so whatever is beyond the cursor is there to be counted. */
const INSPECT = new RedisScript(`
local state = redis.call('HMGET', KEYS[2], '${LEASE_STATE.epoch}', '${LEASE_STATE.cursor}')
local cursor = state[2] or '0-0'
local first = redis.call('XRANGE', KEYS[3], '(' .. cursor, '+', 'COUNT', 1)[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lag = first and now - tonumber(string.match(first[1], '^%d+')) or 0
return {redis.call('GET', KEYS[1]) or '', state[1] or '0', math.max(0, redis.call('PTTL', KEYS[1])), cursor,
  redis.call('XLEN', KEYS[3]), math.max(0, lag), redis.call('XLEN', KEYS[4])}
`);

/** @throws ServingError as {@link RedisConnection.command} */
export async function inspectPartition(redis: RedisConnection, keys: PartitionKeys): Promise<InspectedPartition> {
  const reply = await redis.run(INSPECT, [keys.owner, keys.state, keys.in, keys.dead], []);
  const [owner = '', epoch, leaseMs, cursor = '', entries, lagMs, dead] = (reply as readonly unknown[]).map(String);
  return {
    owner: owner === '' ? undefined : owner,
    epoch: Number(epoch),
    leaseMs: Number(leaseMs),
    cursor,
    entries: Number(entries),
    lagMs: Number(lagMs),
    dead: Number(dead),
  };
}

/** The last ones first. @throws ServingError as {@link RedisConnection.command} */
export async function readDeadEntries(redis: RedisConnection, keys: PartitionKeys, most: number): Promise<readonly DeadEntry[]> {
  const reply = await redis.commandBuffer('XREVRANGE', keys.dead, '+', '-', 'COUNT', most);
  return (reply as readonly [Buffer, readonly Buffer[]][]).map(([id, fields]) => {
    const field = (name: string): Buffer => {
      const at = fields.findIndex((each, index) => index % 2 === 0 && each.toString() === name);
      return (at < 0 ? undefined : fields[at + 1]) ?? Buffer.alloc(0);
    };
    return {
      entry: field('id').toString(),
      setAsideMs: Number.parseInt(id.toString(), 10),
      reason: field('reason').toString(),
      size: Number(field('size').toString()),
      bytes: field('bytes'),
    };
  });
}
