/** What a failure of Redis means to those who use it: it cannot be reached, it is full, it refuses, or we have a bug. */
import { ServingError } from '@paceline/protocol';

/** First words of error replies that pass by themselves. */
const TRANSIENT = new Set([
  'LOADING',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'MISCONF',
  'NOREPLICAS',
  'BUSY',
  'MOVED',
  'ASK',
  'UNBLOCKED',
]);
const DENIED = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM']);

/**
 * UNAVAILABLE with reason `redis_unavailable` (no connection, or Redis cannot serve now), `redis_full` (`maxmemory`),
 * `redis_denied` (credentials) or `redis_too_old`; INTERNAL `redis_error` for any other error reply. The cause has the details, the message
 * no address.
 */
export function redisError(thrown: unknown): ServingError {
  if (thrown instanceof ServingError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const isReply = thrown instanceof Error && thrown.name === 'ReplyError';
  const word = message.split(' ', 1)[0] ?? '';
  if (isReply && word === 'OOM')
    return new ServingError('UNAVAILABLE', 'Redis has reached its memory limit (maxmemory)', { reason: 'redis_full', cause: thrown });
  if (isReply && DENIED.has(word))
    return new ServingError('UNAVAILABLE', 'Redis refuses the credentials of the server', { reason: 'redis_denied', cause: thrown });
  // The first line of each script is one that only Redis 7 understands.
  if (isReply && message.includes("near '#'"))
    return new ServingError('UNAVAILABLE', 'Redis is too old: version 7 or newer is needed', { reason: 'redis_too_old', cause: thrown });
  if (isReply && !TRANSIENT.has(word))
    return new ServingError('INTERNAL', 'internal error; the server log has the details', { reason: 'redis_error', cause: thrown });
  return new ServingError('UNAVAILABLE', 'Redis cannot be reached or cannot serve now', { reason: 'redis_unavailable', cause: thrown });
}
