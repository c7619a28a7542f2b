// The redis-server that tests start for themselves. A server that runs alone needs none.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { run } from './processes.mjs';
import { SetupError } from './setup-error.mjs';

/** Scripts that may run at `maxmemory` came with it. */
const OLDEST_MAJOR = 7;

/** Its major version; undefined where there is none. */
function installedMajor() {
  try {
    const text = execFileSync('redis-server', ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    execFileSync('redis-cli', ['--version'], { stdio: 'ignore' });
    return Number(/v=(\d+)/.exec(text)?.[1]);
  } catch {
    return undefined;
  }
}

/** Installs Redis where it is missing and we may. @throws SetupError where we may not, or what is there is too old */
export async function ensureRedis(say) {
  if (installedMajor() >= OLDEST_MAJOR) return;
  if (installedMajor() === undefined && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    say('installing redis-server for the tests');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '--quiet'], { env });
    // Tests start their own on free ports; the system's service is not wanted.
    await run('apt-get', ['install', '--yes', '--quiet', '--no-install-recommends', 'redis-server'], { env: { ...env, RUNLEVEL: '1' } });
    if (installedMajor() >= OLDEST_MAJOR) return;
  }
  const found = installedMajor();
  throw new SetupError(
    `The tests need redis-server and redis-cli ${OLDEST_MAJOR} or newer; found ${found === undefined ? 'none' : `version ${found}`}.`,
    [
      'Install it, on Debian 12 and Ubuntu 24.04 or newer with: sudo apt-get install redis-server',
      'or leave these tests out: npm test -- --skip unit --skip e2e',
    ],
  );
}
