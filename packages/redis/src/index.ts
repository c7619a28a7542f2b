export { connectRedis, type RedisArgument, type RedisConnection } from './connection.js';
export { redisError } from './errors.js';
export { LEASE_STATE, RedisKeys, type LeaseKeys, type PartitionKeys } from './keys.js';
export type { RedisOptions } from './options.js';
export { RedisScript } from './script.js';
export { RedisTime } from './time.js';
