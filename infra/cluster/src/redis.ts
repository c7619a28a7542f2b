/** The launcher's own Redis: on the loopback interface, without anything on disk. Everything in it can be lost. */
import { execFileSync } from 'node:child_process';
import { answers } from './probe.js';
import type { ProcessSpec } from './supervised-process.js';

/** Its name among the processes. */
export const REDIS = 'redis';

/** An error that is printed as its message alone. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
}

/** @param folder for files that it might write all the same */
export function redisSpec(port: number, folder: string): ProcessSpec {
  const settings = { port, bind: '127.0.0.1', dir: folder, save: '', appendonly: 'no', daemonize: 'no', loglevel: 'warning' };
  const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, String(value)]);
  return { name: REDIS, command: 'redis-server', args, env: process.env };
}

/** What it says at every start, and a warning about saving to disk, which it does not do here. */
export function isStartNoise(line: string): boolean {
  return / # (oO0OoO0OoO0Oo |Redis version=|Configuration loaded|Server initialized|WARNING Memory overcommit )/.test(line);
}

/** Scripts that may run at `maxmemory` came with it. */
const OLDEST_MAJOR = 7;
const ADVICE =
  'Install it (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis),\n' +
  'or name a Redis that runs already: --redis-url=redis://<host>:6379';

/** @throws LaunchError with what to do, where there is no redis-server or one that is too old */
export function checkRedisServer(): void {
  let version: string;
  try {
    version = execFileSync('redis-server', ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    throw new LaunchError(`redis-server was not found. ${ADVICE}`);
  }
  const found = /v=(\d+)[\d.]*/.exec(version);
  if (Number(found?.[1]) < OLDEST_MAJOR) {
    throw new LaunchError(`redis-server ${OLDEST_MAJOR} or newer is needed, found ${found?.[0].slice(2)}. ${ADVICE}`);
  }
}

export function redisAnswers(port: number): Promise<boolean> {
  return answers({ kind: 'tcp', host: '127.0.0.1', port });
}
