/** What the reader of a partition has Redis do in one step. */
import { LEASE_STATE, RedisScript } from '@paceline/redis';

/**
 * Notes how far the owner has read, and removes what it has read; does nothing for whoever is not the owner.
 * KEYS owner, state, stream; ARGV owner, cursor, lowest id that stays. @returns 1 = done, 0 = not the owner
 */
export const ADVANCE = new RedisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], '${LEASE_STATE.cursor}', ARGV[2])
redis.call('XTRIM', KEYS[3], 'MINID', ARGV[3])
return 1
`);

/** The last id that a stream gave out; 0-0 for one that is not there. KEYS stream */
export const LAST_ID = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return '0-0' end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then return info[i + 1] end
end
`);

/** They hold what clients sent: a week after the last one of a partition all of them go. */
const DEAD_TTL_MS = 7 * 24 * 3_600_000;

/** Keeps an entry that cannot be decoded. KEYS dead; ARGV how many are kept, its id, the reason, its size, its first bytes */
export const SET_ASIDE = new RedisScript(`
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[1], '*', 'id', ARGV[2], 'reason', ARGV[3], 'size', ARGV[4], 'bytes', ARGV[5])
return redis.call('PEXPIRE', KEYS[1], ${DEAD_TTL_MS})
`);
