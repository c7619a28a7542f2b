// What `paceline streams` says of a real Redis, of entries that nobody can read, and of a Redis that is not there.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { RedisKeys } from '@paceline/redis';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { CommanderError, type Command } from 'commander';
import { createProgram } from './program.js';

const OWNER = 'aaaaaaaaaaaaaaaa';
const keys = new RedisKeys('shown');
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis({ args: ['--enable-debug-command', 'yes'] });
});
afterAll(() => server.stop());
beforeEach(() => server.command('FLUSHALL'));
afterEach(() => {
  jest.restoreAllMocks();
});

function inProcess(command: Command, errors: string[]): Command {
  command.exitOverride().configureOutput({ writeErr: (text) => errors.push(text), outputError: (text) => errors.push(text) });
  for (const child of command.commands) inProcess(child, errors);
  return command;
}

async function run(...words: string[]): Promise<{ printed: string; errors: string }> {
  const printed: string[] = [];
  const errors: string[] = [];
  jest.spyOn(console, 'log').mockImplementation((text) => void printed.push(String(text)));
  try {
    await inProcess(createProgram(), errors).parseAsync(['streams', ...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
  }
  return { printed: printed.join('\n'), errors: errors.join('') };
}

const show = (...words: string[]): ReturnType<typeof run> =>
  run(`--redis-url=${server.url}`, '--cluster-prefix=shown', '--partitions=2', ...words);

/** One partition that is read, with two entries behind the cursor and one that was set aside. */
async function fill(): Promise<void> {
  const { owner, state, in: stream, dead } = keys.partition(1);
  await server.command('SET', owner, OWNER, 'PX', '60000');
  await server.command('HSET', state, 'epoch', '7', 'cursor', '5-1');
  for (const id of ['6-0', '7-0']) await server.command('XADD', stream, id, 'e', 'x');
  await server.command('XADD', dead, '1764532606000-0', 'id', '5-1', 'reason', 'entry at byte 2: broken', 'size', '70000', 'bytes', 'abc');
}

describe('paceline streams', () => {
  test('shows each partition, and what was set aside with its reason', async () => {
    await fill();
    const { printed, errors } = await show();
    expect(errors).toBe('');
    const lines = printed.split('\n').map((line) => line.trim().split(/ {2,}/));
    expect(lines[2]).toEqual(['partition', 'owner', 'epoch', 'lease ms', 'entries', 'lag ms', 'dead', 'cursor']);
    expect(lines[3]).toEqual(['0', 'nobody', '0', '0', '0', '0', '0', '0-0']);
    expect(lines[4]).toEqual(['1', `${OWNER} (gone)`, '7', expect.stringMatching(/^[1-9]\d*$/), '2', expect.any(String), '1', '5-1']);
    expect(Number(lines[4]?.[5])).toBeGreaterThan(1e9);
    expect(lines.at(-1)).toEqual(['1', '5-1', '2025-11-30T19:56:46.000Z', '70000', 'entry at byte 2: broken']);
  });

  test('--json gives the bytes as well, --dead=0 leaves them out', async () => {
    await fill();
    const { dead, partitions } = JSON.parse((await show('--json')).printed) as { dead: unknown[]; partitions: unknown[] };
    expect(partitions).toHaveLength(2);
    const bytes = Buffer.from('abc').toString('base64');
    expect(dead).toEqual([
      { partition: 1, entry: '5-1', setAsideMs: 1764532606000, reason: 'entry at byte 2: broken', size: 70000, bytes },
    ]);
    expect(JSON.parse((await show('--json', '--dead=0')).printed)).toMatchObject({ dead: [] });
  });

  test('counts partitions as the members of the cluster do, and knows an owner that is there', async () => {
    await fill();
    const member = { role: 'scheduler', id: OWNER, address: '', draining: false, common: { partitions: 3, secretMark: '' } };
    await server.command('HSET', keys.members.records, OWNER, JSON.stringify(member));
    await server.command('ZADD', keys.members.expiry, String(Date.now() + 30_000), OWNER);
    const { printed } = await show();
    expect(printed).toContain('members: 0 gateways, 1 schedulers, 0 workers');
    expect(printed.match(/^[012] /gm)).toHaveLength(4);
    expect(printed).not.toContain('gone');
  });

  test('changes nothing', async () => {
    await fill();
    const before = await server.command('DEBUG', 'DIGEST');
    await show();
    expect(await server.command('DEBUG', 'DIGEST')).toBe(before);
  });

  test.each([
    [[], '--redis-url is needed'],
    [['--redis-url=redis://127.0.0.1:1'], 'Redis at 127.0.0.1:1 was not reached in 5000 ms: connect ECONNREFUSED'],
    [['--redis-url=redis://127.0.0.1', '--dead=many'], "--dead: expected --dead=<count> with a whole number from 0 to 1000, found 'many'"],
    [['--redis-url=redis://127.0.0.1', '--redis-password-file=/nonexistent'], '/nonexistent'],
  ])(
    '%j: %s',
    async (words, text) => {
      const { printed, errors } = await run(...words);
      expect([printed, errors]).toEqual(['', expect.stringContaining(text)]);
    },
    15_000,
  );

  test('--help says what it shows', async () => {
    expect((await run('--help')).printed).toContain('Usage: paceline streams --redis-url=<url>');
  });
});
