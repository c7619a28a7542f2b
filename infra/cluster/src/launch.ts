/**
 * The launcher from its command line to its exit code: prepares ports, secret and Redis, starts the cluster, tells where
 * it is to be found, and ends it at a signal; a second signal does not wait. Nothing of it stays behind.
 */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { constants as system, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { systemClock } from '@paceline/clock';
import { readArguments, type LauncherOptions } from './arguments.js';
import { Cluster } from './cluster.js';
import { FreePorts } from './free-ports.js';
import { OrphanGuard } from './orphan-guard.js';
import { planProcesses, type ProcessPlan, type Programs } from './plan.js';
import { checkRedisServer, isStartNoise, LaunchError, REDIS, redisSpec } from './redis.js';
import { overview } from './overview.js';
import { signals } from './signals.js';
import { writeLine } from './write-line.js';

const SECRET_BYTES = 32;
/** On top of what the processes themselves allow for a drain. */
const DRAIN_SLACK_MS = 5000;
const REMIND_EVERY_MS = 10_000;

const say = (text: string): void => writeLine('stderr', `cluster: ${text}`);

/**
 * @param remindEveryMs how often to name what does not serve yet
 * @returns the exit code: 0 when everything that was accepted has been finished
 */
export async function launch(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  programs: Programs,
  remindEveryMs: number = REMIND_EVERY_MS,
): Promise<number> {
  const parsed = readArguments(argv, env);
  if (parsed.kind === 'help') {
    process.stdout.write(parsed.text);
    return 0;
  }
  if (parsed.kind === 'errors') {
    for (const error of parsed.errors) say(error);
    return 1;
  }
  const folder = mkdtempSync(join(tmpdir(), 'paceline-cluster-'));
  try {
    return await run(parsed.launcher, { env, programs, folder, remindEveryMs });
  } catch (error) {
    if (!(error instanceof LaunchError)) throw error;
    say(error.message);
    return 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly programs: Programs;
  /** For files of this run alone. */
  readonly folder: string;
  readonly remindEveryMs: number;
}

async function run(launcher: LauncherOptions, { env, programs, folder, remindEveryMs }: Surroundings): Promise<number> {
  const { options, ownRedis } = launcher;
  const stateFile = launcher.stateFile === undefined ? undefined : resolve(launcher.stateFile);
  if (stateFile !== undefined) checkFolder(stateFile);
  for (const folder of options.repository.directories) checkRepository(folder);
  if (ownRedis) checkRedisServer();
  const signalled = signals();
  const free = new FreePorts();
  const redisPort = ownRedis ? await free.take() : portOf(options.cluster.redis.urls[0] ?? '');
  const examples = options.repository.directories.length === 0 ? programs.exampleModels : undefined;
  const extra = [
    ...(ownRedis ? [`--redis-url=redis://127.0.0.1:${redisPort}`] : []),
    ...(examples === undefined ? [] : [`--model-repository=${examples}`]),
    ...secretFlags(launcher, folder),
  ];
  const processes = await planProcesses(launcher, extra, programs, free);
  const prefix = prefixOf(processes);
  const cluster = new Cluster({
    clock: systemClock,
    redis: { port: redisPort, spec: ownRedis ? redisSpec(redisPort, folder) : undefined },
    processes,
    env: childEnvironment(env),
    stateFile,
    guard: new OrphanGuard(folder, stateFile),
    drainLimitUs: 1000 * (1000 * options.exitTimeoutSecs + options.drainDelayMs + options.lameDuckMs + DRAIN_SLACK_MS),
    remindEveryUs: 1000 * remindEveryMs,
    // The log of Redis goes to its standard output; ours is for what the programs print there.
    onLine: (name, stream, line) => {
      if (name !== REDIS || !isStartNoise(line)) writeLine(name === REDIS ? 'stderr' : stream, `${prefix(name)}${line}`);
    },
    say,
  });
  try {
    return await serve(cluster, signalled, () =>
      overview({ options, processes, redisPort: ownRedis ? redisPort : undefined, stateFile, examples }),
    );
  } catch (error) {
    await cluster.kill();
    throw error;
  }
}

async function serve(cluster: Cluster, signalled: ReturnType<typeof signals>, text: () => string): Promise<number> {
  const outcome = await Promise.race([cluster.start(), signalled.first]);
  if (typeof outcome !== 'string' && outcome.ready) {
    process.stdout.write(text());
  } else if (typeof outcome !== 'string') {
    say(`${outcome.reason}: the cluster cannot start`);
    await cluster.kill();
    return 1;
  }
  const signal = await signalled.first;
  say(`${signal}: letting everything finish`);
  const drained = await Promise.race([cluster.drain(), signalled.second]);
  if (typeof drained === 'boolean') return drained ? 0 : 1;
  say(`${drained}: ending everything at once`);
  await cluster.kill();
  return 128 + system.signals[drained];
}

function checkFolder(stateFile: string): void {
  try {
    accessSync(dirname(stateFile), constants.W_OK);
  } catch (cause) {
    throw new LaunchError(`--state-file=${stateFile}: ${dirname(stateFile)} is no folder that can be written to`, { cause });
  }
}

/** Schedulers wait for a folder that is missing: it may be on another machine's disk. Here it is a slip of the pen. */
function checkRepository(folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    if (statSync(folder).isDirectory()) return;
  } catch (cause) {
    throw new LaunchError(`--model-repository=${folder}: there is no folder that can be read`, { cause });
  }
  throw new LaunchError(`--model-repository=${folder} is no folder`);
}

/** A secret that nobody else knows, unless there is one. */
function secretFlags({ options: { cluster } }: LauncherOptions, folder: string): readonly string[] {
  if (cluster.secret !== undefined || cluster.secretFile !== undefined) return [];
  const file = join(folder, 'secret');
  writeFileSync(file, `${randomBytes(SECRET_BYTES).toString('base64url')}\n`, { mode: 0o600 });
  return [`--cluster-secret-file=${file}`];
}

function portOf(url: string): number {
  const port = /:(\d+)(?:\/\d*)?$/.exec(url)?.[1];
  return port === undefined ? 6379 : Number(port);
}

/** The children have another launcher than we have, and write what a person reads where we do. */
function childEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PACELINE_LAUNCHER_PID: _, ...rest } = env;
  return process.stderr.isTTY ? { ...rest, PACELINE_LOG_READABLE: 'true' } : rest;
}

function prefixOf(processes: readonly ProcessPlan[]): (name: string) => string {
  const width = Math.max(...processes.map(({ name }) => name.length));
  return (name) => `${name.padEnd(width)} | `;
}
