// The Redis adapters keep the contracts on a real server.
import { afterAll, beforeAll } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { connectRedis, RedisKeys, type RedisConnection } from '@paceline/redis';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { describeDesiredState, describeLeases, describeMembership, type OpenStore } from '../testing/index.js';
import { RedisDesiredState } from './desired-state.js';
import { RedisLeases } from './leases.js';
import { RedisMembership } from './membership.js';

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});

afterAll(() => server.stop());

function open<Port>(make: (connection: RedisConnection, keys: RedisKeys) => Port): OpenStore<Port> {
  return async () => {
    const connection = connectRedis({ mode: 'standalone', urls: [server.url], name: 'test' });
    await connection.whenUp(10_000);
    await connection.command('FLUSHALL');
    const waiter = connection.blocking('test waits', 5000);
    await waiter.whenUp(10_000);
    const keys = new RedisKeys('test');
    return {
      connect: () => make(connection, keys),
      elapse: async (ms: number) => {
        await waiter.command('BLPOP', 'never', ms / 1000);
      },
      close: () => {
        waiter.close();
        connection.close();
        return Promise.resolve();
      },
    };
  };
}

describeLeases(
  'Redis',
  open((connection, keys) => new RedisLeases(connection, keys)),
);
describeMembership(
  'Redis',
  open((connection, keys) => new RedisMembership(connection, keys, systemClock)),
);
describeDesiredState(
  'Redis',
  open((connection, keys) => new RedisDesiredState(connection, keys)),
);
