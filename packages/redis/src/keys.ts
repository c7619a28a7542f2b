/**
 * Every key that Paceline has in Redis. Those that one script touches together carry the same hash tag, so that they lie
 * in one slot of a cluster; each partition has a tag of its own, so that a cluster spreads them.
 */
import { ServingError } from '@paceline/protocol';

export interface LeaseKeys {
  /** String with a time to live: the id of the process that holds the lease. */
  readonly owner: string;
  /** Hash that survives the owner; its fields are {@link LEASE_STATE}. */
  readonly state: string;
}

export interface PartitionKeys extends LeaseKeys {
  /** Stream of packed request entries. */
  readonly in: string;
  /** Stream of entries that could not be decoded. */
  readonly dead: string;
}

/** Fields of {@link LeaseKeys.state}. */
export const LEASE_STATE = {
  /** The highest epoch number that was given out. */
  epoch: 'epoch',
  /** Id of the last entry that the owner took in. */
  cursor: 'cursor',
  /** How long the last acquisition or renewal was granted for, milliseconds. */
  ttlMs: 'ttl',
} as const;

export class RedisKeys {
  /** Hash of live processes, and the sorted set of when they end to be. */
  readonly members: { readonly records: string; readonly expiry: string };
  /** Hash of models that somebody loaded or unloaded by request. */
  readonly desired: string;

  /** @param prefix what all keys begin with, so that clusters can share a Redis: letters, digits, `.`, `_`, `-`. @throws ServingError */
  constructor(readonly prefix: string) {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(prefix)) {
      const expected = '1 to 64 letters, digits, ".", "_" or "-" are expected';
      throw new ServingError('INVALID_ARGUMENT', `cluster prefix: ${expected}, found "${prefix}"`, { reason: 'redis_options' });
    }
    this.members = { records: `{${prefix}:members}:records`, expiry: `{${prefix}:members}:expiry` };
    this.desired = `{${prefix}:desired}:models`;
  }

  /** @param name of the lease: `p0`.. for partitions, `placement` */
  lease(name: string): LeaseKeys {
    const tag = `{${this.prefix}:${name}}`;
    return { owner: `${tag}:owner`, state: `${tag}:state` };
  }

  partition(partition: number): PartitionKeys {
    const tag = `{${this.prefix}:p${partition}}`;
    return { ...this.lease(`p${partition}`), in: `${tag}:in`, dead: `${tag}:dead` };
  }
}
