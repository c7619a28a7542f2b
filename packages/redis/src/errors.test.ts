// Error replies that no server here can be made to give.
import { expect, test } from '@jest/globals';
import { redisError } from './errors.js';

function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

test.each([
  [reply('LOADING Redis is loading the dataset in memory'), 'redis_unavailable'],
  [reply('CLUSTERDOWN Hash slot not served'), 'redis_unavailable'],
  [reply('MASTERDOWN Link with MASTER is down'), 'redis_unavailable'],
  [reply("ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'"), 'redis_too_old'],
  [reply('NOPERM this user has no permissions to run the command'), 'redis_denied'],
  [reply('ERR unknown command'), 'redis_error'],
  [new Error('Too many Cluster redirections. Last error: MOVED 1 10.0.0.1:1'), 'redis_unavailable'],
  ['no error at all', 'redis_unavailable'],
])('%s is %s', (thrown, reason) => {
  const error = redisError(thrown);
  expect(error.reason).toBe(reason);
  expect(error.code).toBe(reason === 'redis_error' ? 'INTERNAL' : 'UNAVAILABLE');
  // It may reach a client: neither an address nor a key.
  expect(error.message).not.toMatch(/\d+\.\d+|slot|command/);
  expect(error.cause).toBe(thrown);
  expect(redisError(error)).toBe(error);
});
