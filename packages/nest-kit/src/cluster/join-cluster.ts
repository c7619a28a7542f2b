/**
 * The way of a process into its cluster: a connection to Redis, and a heartbeat once it can be reached by others. Joining
 * needs Redis to be there once; after that it may go and come.
 */
import type { Clock } from '@paceline/clock';
import { RedisMembership } from '@paceline/cluster-state';
import type { ClusterOptions } from '@paceline/config';
import type { Member, ServingError } from '@paceline/protocol';
import { connectRedis, RedisKeys, type RedisConnection } from '@paceline/redis';
import type { Logger } from '@paceline/telemetry';
import { commonSettings, disagreement } from './common-settings.js';
import { readLinkSecurity } from './link-security.js';
import { readFirstLine } from '../process/read-first-line.js';
import { StartError } from '../process/start-error.js';
import { MembershipBeat } from './membership-beat.js';

export interface JoinOptions {
  readonly self: Pick<Member, 'role' | 'id'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** See {@link MembershipBeatOptions.lifetimeMs}. */
  readonly lifetimeMs?: number;
}

export interface JoinedCluster {
  /** Shared by all adapters of the process whose commands do not block. */
  readonly redis: RedisConnection;
  readonly keys: RedisKeys;
  /**
   * Begins to announce this process and to tell who else is there. Resolves after the first beat.
   * @param address `host:port` where others reach it; '' for a process that listens nowhere
   * @param first `draining`: it is not to be counted on yet; default false
   */
  announce(
    address: string,
    onMembers: (members: readonly Member[]) => void,
    first?: { readonly draining: boolean },
  ): Promise<MembershipBeat>;
  /** Leaves the membership and closes the connection. Never rejects. */
  close(): Promise<void>;
}

/** A Redis that is being started beside this process may take a while. */
const CONNECT_LIMIT_MS = 15_000;

/** @throws StartError when Redis cannot be reached, a setting is wrong, or the processes that are there have another one */
export async function joinCluster(options: ClusterOptions, { self, clock, logger, lifetimeMs }: JoinOptions): Promise<JoinedCluster> {
  const { passwordFile, ...redisOptions } = options.redis;
  const password = passwordFile === undefined ? undefined : readFirstLine('--redis-password-file', passwordFile);
  const keys = stating('--cluster-prefix', () => new RedisKeys(options.prefix));
  const redis = stating('--redis-url', () => connectRedis({ ...redisOptions, password, name: `paceline-${self.role}-${self.id}` }));
  try {
    await redis.whenUp(CONNECT_LIMIT_MS);
  } catch (cause) {
    redis.close();
    throw new StartError(`${(cause as ServingError).message}; check --redis-url`, { cause });
  }
  const membership = new RedisMembership(redis, keys, clock);
  const common = await commonSettings(options, readLinkSecurity(options).secret);
  // A Redis that fails at this moment tells nothing about the others; the links will tell.
  const wrong = disagreement(common, await membership.look().catch(() => []));
  if (wrong !== undefined) {
    redis.close();
    throw new StartError(wrong);
  }
  let beat: MembershipBeat | undefined;
  return {
    redis,
    keys,
    async announce(address, onMembers, { draining } = { draining: false }) {
      beat = new MembershipBeat(
        { ...self, address, draining, common },
        {
          membership,
          clock,
          intervalMs: options.heartbeatMs,
          ...(lifetimeMs !== undefined && { lifetimeMs }),
          onMembers,
          onFailure: (error) => {
            if (error) logger.error({ err: error }, 'heartbeats fail: the members known last are taken to be there');
            else logger.info('heartbeats succeed again');
          },
        },
      );
      await beat.start();
      return beat;
    },
    async close() {
      await beat?.stop();
      redis.close();
    },
  };
}

function stating<T>(flag: string, make: () => T): T {
  try {
    return make();
  } catch (cause) {
    throw new StartError(`${flag} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
