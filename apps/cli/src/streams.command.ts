/**
 * `paceline streams`: what waits in each partition of a cluster, who reads it, and the entries that could not be decoded.
 * It takes the flags of the cluster's processes, and changes nothing.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '@paceline/clock';
import { RedisMembership } from '@paceline/cluster-state';
import { parseClusterOptions, type ClusterOptions } from '@paceline/config';
import { ServingError } from '@paceline/protocol';
import { connectRedis, RedisKeys } from '@paceline/redis';
import { inspectPartition, readDeadEntries } from '@paceline/streams';
import { Command } from 'commander';
import { jsonOf, textOf, type StreamsReport } from './streams-report.js';

const HELP = `Usage: paceline streams --redis-url=<url> [--json] [--dead=<count>] [flags of the cluster's processes]

Shows for each partition of a cluster: which scheduler reads it under which epoch, how much of its lease is left, how many
entries wait and how long the oldest has waited; and the entries that could not be decoded, with the reason. Changes nothing.

  --dead=<count>  How many of a partition's undecodable entries to show, the last ones first. Default: 10.
  --json          Everything as one JSON object; of undecodable entries also their first 16 KiB, in base64.

Where Redis is and how to get in is said by the flags of the processes: --redis-url, --redis-mode, --redis-sentinel-master,
--redis-password-file, --redis-ca-file, --cluster-prefix.
`;

const CONNECT_LIMIT_MS = 5000;
const DEFAULT_DEAD = 10;
/** As many as a partition keeps. */
const MOST_DEAD = 1000;

export function streamsCommand(): Command {
  const command: Command = new Command('streams')
    .usage('--redis-url=<url> [flags]')
    .description('show what waits in the streams of a cluster, who reads them, and what could not be decoded')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action((_options: object, self: Command) => run(self));
  return command;
}

async function run(command: Command): Promise<void> {
  const asked = readArguments(command.args);
  if (asked.kind === 'help') return console.log(HELP);
  if (asked.kind === 'errors') return command.error(asked.errors.map((error) => `paceline streams: ${error}`).join('\n'));
  try {
    const report = await inspect(asked.cluster, asked.dead);
    console.log(asked.json ? jsonOf(report) : textOf(report));
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException;
    if (!(error instanceof ServingError) && syscall === undefined) throw error;
    command.error(`paceline streams: ${message}`);
  }
}

type Asked =
  | { readonly kind: 'help' }
  | { readonly kind: 'errors'; readonly errors: readonly string[] }
  | { readonly kind: 'options'; readonly cluster: ClusterOptions; readonly json: boolean; readonly dead: number };

function readArguments(words: readonly string[]): Asked {
  if (words.includes('--help') || words.includes('-h')) return { kind: 'help' };
  const own = /^--(?:json|dead(?:=.*)?)$/;
  const parsed = parseClusterOptions(
    'streams',
    words.filter((word) => !own.test(word)),
    process.env,
  );
  const errors = parsed.kind === 'errors' ? [...parsed.errors] : [];
  const deadText = words.findLast((word) => word.startsWith('--dead'))?.slice('--dead='.length);
  const dead = deadText === undefined ? DEFAULT_DEAD : Number(deadText);
  if (deadText !== undefined && (!/^\d+$/.test(deadText) || dead > MOST_DEAD))
    errors.push(`--dead: expected --dead=<count> with a whole number from 0 to ${MOST_DEAD}, found '${deadText}'`);
  if (errors.length > 0 || parsed.kind !== 'options') return { kind: 'errors', errors };
  return { kind: 'options', cluster: parsed.options.cluster, json: words.includes('--json'), dead };
}

async function inspect({ redis: { passwordFile, ...options }, prefix, partitions }: ClusterOptions, most: number): Promise<StreamsReport> {
  const password = passwordFile === undefined ? undefined : (readFileSync(passwordFile, 'utf8').split('\n', 1)[0] ?? '').trim();
  const keys = new RedisKeys(prefix);
  const redis = connectRedis({ ...options, password, name: 'paceline-streams' });
  try {
    await redis.whenUp(CONNECT_LIMIT_MS);
    const members = await new RedisMembership(redis, keys, systemClock).look();
    // Those who are there know how many there are; without them the flag has to do.
    const count = members.find(({ common }) => common !== undefined)?.common?.partitions ?? partitions;
    const numbers = Array.from({ length: count }, (_, partition) => partition);
    const inspected = await Promise.all(numbers.map((partition) => inspectPartition(redis, keys.partition(partition))));
    const dead: StreamsReport['dead'][number][] = [];
    for (const partition of numbers) {
      if (most === 0 || inspected[partition]?.dead === 0) continue;
      for (const entry of await readDeadEntries(redis, keys.partition(partition), most)) dead.push({ partition, ...entry });
    }
    return {
      members: members.map(({ role, id, address, draining }) => ({ role, id, address, draining })),
      partitions: inspected.map((each, partition) => ({ partition, ...each })),
      dead,
    };
  } finally {
    redis.close();
  }
}
