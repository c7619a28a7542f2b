// The Redis that other tests stand on does what its handle says.
import { afterEach, describe, expect, test } from '@jest/globals';
import { TestAuthority } from '../tls/authority.js';
import { startRedis, type RedisServer } from './server.js';

describe('startRedis', () => {
  let server: RedisServer | undefined;

  afterEach(async () => {
    await server?.stop();
    server = undefined;
  });

  test('keeps its data over a restart only when told to, and its address always', async () => {
    server = await startRedis();
    const { url, pid } = server;
    await server.command('SET', 'a', '1');
    await server.restart({ keepData: true });
    expect(await server.command('GET', 'a')).toBe('1');
    expect(server.pid).not.toBe(pid);
    await server.restart({ keepData: false });
    expect(await server.command('GET', 'a')).toBe('');
    expect(server.url).toBe(url);
  });

  test('a killed one is gone until it is started again', async () => {
    server = await startRedis();
    const { pid } = server;
    await server.kill();
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    await expect(server.command('PING')).rejects.toThrow('Connection refused');
    await server.start();
    expect(await server.command('PING')).toBe('PONG');
  });

  test('asks for its password and speaks TLS', async () => {
    const authority = await TestAuthority.create();
    try {
      const tls = { ...(await authority.issue('redis')), caFile: authority.certificate.certFile };
      server = await startRedis({ password: 'p@ss word', tls });
      expect(server.url).toBe(`rediss://:p%40ss%20word@127.0.0.1:${server.port}`);
      expect(await server.command('PING')).toBe('PONG');
    } finally {
      authority.remove();
    }
  });

  test('tells what is wrong with an argument', async () => {
    await expect(startRedis({ args: ['--maxmemory', 'plenty'] })).rejects.toThrow('argument must be a memory value');
  });
});
