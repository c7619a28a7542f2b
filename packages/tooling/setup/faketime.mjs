// faketime, with which tests give single processes a wrong clock. They leave themselves out where it is missing.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './processes.mjs';

function isInstalled() {
  const root = '/usr/lib';
  return existsSync(root) && readdirSync(root).some((name) => existsSync(join(root, name, 'faketime', 'libfaketimeMT.so.1')));
}

/** Installs it where it is missing and we may; says so where not. */
export async function ensureFaketime(say) {
  if (isInstalled()) return;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    say('installing faketime for the tests');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '--quiet'], { env });
    await run('apt-get', ['install', '--yes', '--quiet', '--no-install-recommends', 'faketime'], { env });
  }
  if (!isInstalled()) say('faketime is missing: tests with clocks that are wrong are left out (Debian, Ubuntu: apt-get install faketime)');
}
