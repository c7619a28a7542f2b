/**
 * The command line of the launcher: how many processes of each kind, and flags that it hands on. All of it is judged
 * before anything starts, so that a slip of the pen is one message and not one from each process.
 */
import { parseClusterOptions, type ClusterServeOptions } from '@paceline/config';

export type Role = 'gateway' | 'scheduler' | 'worker';

export interface LauncherOptions {
  readonly counts: Readonly<Record<Role, number>>;
  /** Where to keep the process ids and ports, as given. */
  readonly stateFile: string | undefined;
  /** Flags for every process, as given. */
  readonly flags: readonly string[];
  /** What those flags say. Where `ownRedis` is set, the address of Redis is not in them yet. */
  readonly options: ClusterServeOptions;
  /** No --redis-url: a Redis has to be started. */
  readonly ownRedis: boolean;
}

export type ParsedArguments =
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'errors'; readonly errors: readonly string[] }
  | { readonly kind: 'options'; readonly launcher: LauncherOptions };

const MOST_PROCESSES = 64;
const DEFAULT_COUNT = 2;
const COUNTS = { gateways: 'gateway', schedulers: 'scheduler', workers: 'worker' } as const;
/** Stands for the Redis that is not there yet. */
const ANY_REDIS = '--redis-url=redis://127.0.0.1';

export const HELP = `Usage: npm run cluster -- [flags]

Serves a model repository with several processes on this machine, joined by Redis: gateways take requests, schedulers
batch them, workers run them. Answers are those of npm start. A process that dies is started again after one second.
Ctrl-C lets all of them finish what they have; a second Ctrl-C ends them at once.

  --gateways=<count>    Gateways, 1 to ${MOST_PROCESSES}. Default: ${DEFAULT_COUNT}. --http-port, --grpc-port and --metrics-port are those
                        of the first one (0 = any); the others take ports that are free.
  --schedulers=<count>  Schedulers, 1 to ${MOST_PROCESSES}. Default: ${DEFAULT_COUNT}.
  --workers=<count>     Workers, 1 to ${MOST_PROCESSES}. Default: ${DEFAULT_COUNT}.
  --model-repository=<directory>
                        Models to serve. Default: the example models.
  --state-file=<file>   File that is kept up to date with the process ids and ports, as JSON. Default: none.
  --redis-url=<url>     Redis to use. Default: a redis-server of its own, which keeps nothing on disk.

Every flag of npm start (npm start -- --help lists them) and every flag of the processes of a cluster is handed on to all
processes, but for --link-port: each process gets one of its own. Without --cluster-secret-file there is a new random
secret each time.
`;

/** @param env as the processes get it: flags may stand there, too */
export function readArguments(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ParsedArguments {
  const errors: string[] = [];
  const counts: Record<Role, number> = { gateway: DEFAULT_COUNT, scheduler: DEFAULT_COUNT, worker: DEFAULT_COUNT };
  const flags: string[] = [];
  let stateFile: string | undefined;
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? '';
    if (word === '--help' || word === '-h') return { kind: 'help', text: HELP };
    const [, name = '', inline] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (!isCount(name) && name !== 'state-file') {
      if (name === 'link-port') errors.push('--link-port cannot be chosen here: each process gets one of its own');
      flags.push(word);
      continue;
    }
    const value = inline ?? argv[++i];
    if (value === undefined || value === '') errors.push(`--${name} needs a value`);
    else if (name === 'state-file') stateFile = value;
    else if (/^\d+$/.test(value) && Number(value) >= 1 && Number(value) <= MOST_PROCESSES) counts[COUNTS[name]] = Number(value);
    else errors.push(`--${name}: expected a whole number from 1 to ${MOST_PROCESSES}, found '${value}'`);
  }
  const ownRedis = !flags.some((flag) => /^--redis-url(=|$)/.test(flag)) && (env['PACELINE_REDIS_URL'] ?? '') === '';
  const parsed = parseClusterOptions('cluster', ownRedis ? [...flags, ANY_REDIS] : flags, env);
  if (parsed.kind === 'errors') errors.push(...parsed.errors);
  if (errors.length > 0 || parsed.kind !== 'options') return { kind: 'errors', errors };
  return { kind: 'options', launcher: { counts, stateFile, flags, options: parsed.options, ownRedis } };
}

function isCount(name: string): name is keyof typeof COUNTS {
  return Object.hasOwn(COUNTS, name);
}
