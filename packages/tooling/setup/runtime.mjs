// Which Node runs Paceline, which pnpm installs it. The machine's own Node only has to start this script.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './processes.mjs';
import { SetupError } from './setup-error.mjs';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PNPM_VERSION = '12.21.0';
const PLATFORMS = new Set(['linux', 'darwin']);

/** @throws SetupError with what to do, where Paceline cannot run at all. */
export function checkMachine() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20) {
    throw new SetupError(`Node 20 or newer is needed to start Paceline; this is ${process.version} (${process.execPath}).`, [
      'Install a newer Node, for instance from https://nodejs.org, and run the command again.',
    ]);
  }
  if (!PLATFORMS.has(process.platform)) {
    throw new SetupError(`Paceline runs on Linux and macOS; this is ${process.platform}.`, [
      'On Windows use WSL 2: https://learn.microsoft.com/windows/wsl.',
    ]);
  }
}

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 9);
}

/**
 * The Node that runs the server: our own where it is 24.9 or newer, else the one that the installation brought.
 * @throws SetupError where there is neither.
 */
export function serverNode() {
  if (isNewEnough(process.versions.node)) return process.execPath;
  const bundled = join(ROOT, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
  if (existsSync(bundled)) return bundled;
  throw new SetupError(`Node 24.9 or newer is needed on ${process.platform}-${process.arch}; this is ${process.version}.`, [
    'Linux on x64 and arm64 gets one with the installation; elsewhere, and where optional packages were left out,',
    'install Node 24 yourself and run the command again.',
  ]);
}

/** Flags of the server's Node, one word each; the same file serves the `paceline` command. */
export function serverNodeFlags() {
  return readFileSync(join(ROOT, 'apps', 'server', 'node.flags'), 'utf8')
    .split(/\s+/)
    .filter((flag) => flag !== '');
}

/** The environment for pnpm and turbo: both found on PATH, nobody's usage reported. @throws SetupError without pnpm. */
export async function toolEnvironment() {
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', TURBO_NO_UPDATE_NOTIFIER: '1', DO_NOT_TRACK: '1' };
  const localBin = join(ROOT, 'node_modules', '.bin');
  const installed = pnpmVersionOnPath() === PNPM_VERSION;
  return { ...env, PATH: [localBin, installed ? process.env.PATH : await pathWithPnpm()].join(delimiter) };
}

function pnpmVersionOnPath() {
  try {
    return execFileSync('pnpm', ['--version'], { encoding: 'utf8', cwd: '/', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** npx keeps pnpm in npm's cache; asked for the PATH it gives to commands, it says where. */
async function pathWithPnpm() {
  process.stderr.write(`paceline: looking for pnpm ${PNPM_VERSION} with npx\n`);
  let answer = '';
  const npx = join(dirname(process.execPath), 'npx');
  const { code } = await run(
    existsSync(npx) ? npx : 'npx',
    ['--yes', '--prefer-offline', '--package', `pnpm@${PNPM_VERSION}`, '-c', 'node -p process.env.PATH'],
    { cwd: ROOT, stdio: ['ignore', 'pipe', 2], onSpawn: (child) => child.stdout.on('data', (text) => (answer += text)) },
  ).catch((error) => ({ code: error.code }));
  const path = answer.trim().split('\n').at(-1);
  if (code === 0 && path) return path;
  throw new SetupError(`pnpm ${PNPM_VERSION} could not be fetched with npx (${code}).`, [
    'The first start needs the npm registry. Behind a proxy set HTTPS_PROXY; for a registry of your own:',
    '  npm config set registry <address>',
    `Or install it yourself and run the command again: npm install --global pnpm@${PNPM_VERSION}`,
  ]);
}
