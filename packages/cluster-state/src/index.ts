export { InMemoryClusterState } from './memory.js';
export type * from './ports.js';
export { RedisDesiredState } from './redis/desired-state.js';
export { RedisLeases } from './redis/leases.js';
export { RedisMembership } from './redis/membership.js';
