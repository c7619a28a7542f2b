// The groups are what they say: a failover happens, and slots are spread.
import { expect, test } from '@jest/globals';
import { startRedisCluster, startRedisSentinel } from './groups.js';

test('a sentinel knows its master and replica', async () => {
  const group = await startRedisSentinel({ password: 'secret' });
  try {
    expect(await group.master.command('INFO', 'replication')).toContain('connected_slaves:1');
    await group.master.command('SET', 'k', 'v');
    expect(await group.master.command('WAIT', '1', '5000')).toBe('1');
    expect(await group.replica.command('GET', 'k')).toBe('v');
  } finally {
    await group.stop();
  }
}, 30_000);

test('a cluster serves each slot at one of three masters, with a replica each', async () => {
  const group = await startRedisCluster({ withReplicas: true });
  try {
    expect(group.urls).toHaveLength(6);
    const answers = await Promise.all(
      group.masters.map((master) => master.command('SET', 'k', 'v').catch((error: unknown) => String(error))),
    );
    expect(answers.filter((answer) => answer === 'OK')).toHaveLength(1);
    expect(answers.filter((answer) => answer.includes('MOVED'))).toHaveLength(2);
    for (const replica of group.replicas) expect(await replica.command('INFO', 'replication')).toContain('role:slave');
  } finally {
    await group.stop();
  }
}, 30_000);
