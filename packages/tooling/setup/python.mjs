// The Python that end-to-end tests make their virtual environment with. Paceline itself needs none.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { run } from './processes.mjs';
import { SetupError } from './setup-error.mjs';

function hasVenv() {
  try {
    execFileSync('python3', ['-c', 'import venv, ensurepip'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Installs Python with its venv module where that is missing and we may. @throws SetupError where we may not. */
export async function ensurePython(say) {
  if (hasVenv()) return;
  const packages = ['python3', 'python3-venv'];
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    say(`installing ${packages.join(' and ')} for the end-to-end tests`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '--quiet'], { env });
    await run('apt-get', ['install', '--yes', '--quiet', '--no-install-recommends', ...packages], { env });
    if (hasVenv()) return;
  }
  throw new SetupError('The end-to-end tests need Python 3 with its venv module.', [
    `Install it, on Debian and Ubuntu with: sudo apt-get install ${packages.join(' ')}`,
    'or leave these tests out: npm test -- --skip e2e',
  ]);
}
