/**
 * A cluster over every kind of Redis that it can be pointed at, as whole processes under a load whose answers are known:
 * what Redis goes through costs time, never an answer. And what is left in Redis afterwards.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  identityModel,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
  temporaryModelRepository,
  TestAuthority,
  type RedisServer,
  type TemporaryRepository,
} from '@paceline/testkit';
import { startCluster, type ClusterProcess } from './support/cluster-process.js';
import { Scrape } from './support/scrape.js';
import { until } from './support/until.js';
import { startVerifiedLoad, type VerifiedLoad } from './support/verified-load.js';

const CLI = fileURLToPath(new URL('../../cli/dist/main.js', import.meta.url));
const LIMIT_MS = 120_000;
const CONFIG = `max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { }`;
const PARTITIONS = 8;
const UNDECODABLE = 'paceline_intake_undecodable_entries_total';

let repository: TemporaryRepository;
let authority: TestAuthority;
let cluster: ClusterProcess | undefined;
const loads = new Set<VerifiedLoad>();
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  const versions = { 1: identityModel({ datatype: 'INT32', dims: [-1] }) };
  repository = temporaryModelRepository(['a', 'b', 'c'].map((name) => ({ name, config: CONFIG, versions })));
  authority = await TestAuthority.create();
});
afterEach(async () => {
  for (const load of loads) void load.stop();
  loads.clear();
  await cluster?.stop('SIGKILL');
  cluster = undefined;
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(() => {
  repository.remove();
  authority.remove();
});

async function start(flags: readonly string[]): Promise<ClusterProcess> {
  const counts = ['--gateways=2', '--schedulers=2', '--workers=2'];
  cluster = await startCluster([`--model-repository=${repository.root}`, `--partitions=${PARTITIONS}`, ...counts, ...flags]);
  return cluster;
}

/** On every model, one of them with requests that are too large to travel through Redis. */
function loadAll({ http }: ClusterProcess): readonly VerifiedLoad[] {
  const started = [
    startVerifiedLoad(http, { model: 'a', clients: 4 }),
    startVerifiedLoad(http, { model: 'b', clients: 2 }),
    startVerifiedLoad(http, { model: 'c', clients: 2, numbers: 5000 }),
  ];
  for (const load of started) loads.add(load);
  return started;
}

/** Each load has so many more answers than now. */
async function answers(load: readonly VerifiedLoad[], more: number): Promise<void> {
  const before = load.map(({ answered }) => answered);
  await until(`${more} more answers each`, 60_000, () => load.every(({ answered }, i) => answered >= (before[i] ?? 0) + more));
}

async function end(load: readonly VerifiedLoad[], running: ClusterProcess): Promise<void> {
  for (const each of load) await each.stop();
  expect(load.flatMap(({ failures }) => failures)).toEqual([]);
  expect(await running.stop()).toBe(0);
}

/** What a cluster that has ended may leave: how far each partition was read and which epoch it had. */
async function leftovers(nodes: readonly RedisServer[]): Promise<readonly string[]> {
  const keys: string[] = [];
  for (const node of nodes) keys.push(...(await node.command('KEYS', '*')).split('\n'));
  return keys.filter((key) => key !== '').sort();
}
const STATES = [...Array.from({ length: PARTITIONS }, (_, i) => `p${i}`), 'placement'].map((name) => `{paceline:${name}}:state`).sort();
/** Streams that were read stay as empty ones, which remember their last number. */
const withoutStreams = (keys: readonly string[]): readonly string[] => keys.filter((key) => !/^\{paceline:p\d+\}:in$/.test(key));

describe('Redis with a password', () => {
  it(
    'is opened by a file, and holds nothing but epochs, cursors and empty streams afterwards',
    async () => {
      const redis = await startRedis({ password: 'p@ss word' });
      stops.push(() => redis.stop());
      const file = join(authority.folder, 'redis-password');
      writeFileSync(file, 'p@ss word\n');
      const running = await start([`--redis-url=redis://127.0.0.1:${redis.port}`, `--redis-password-file=${file}`]);
      const load = loadAll(running);
      await answers(load, 50);
      await end(load, running);
      const keys = await leftovers([redis]);
      expect(withoutStreams(keys)).toEqual(STATES);
      for (const key of keys.filter((each) => each.endsWith(':in'))) expect(await redis.command('XLEN', key)).toBe('0');
      expect(running.log.join('\n')).not.toContain('p@ss word');
    },
    LIMIT_MS,
  );
});

describe('entries that nobody can decode', () => {
  it(
    'cost no answer, are counted, and are shown with the reason',
    async () => {
      const redis = await startRedis();
      stops.push(() => redis.stop());
      const running = await start([`--redis-url=${redis.url}`]);
      const load = loadAll(running);
      await answers(load, 5);
      for (let partition = 0; partition < PARTITIONS; partition++) {
        await redis.command('XADD', `{paceline:p${partition}}:in`, '*', 'e', 'no entry');
        await redis.command('XADD', `{paceline:p${partition}}:in`, '*', 'other', 'field');
      }
      await answers(load, 20);
      const show = (...words: string[]): string =>
        execFileSync(process.execPath, [CLI, 'streams', `--redis-url=${redis.url}`, ...words], { encoding: 'utf8' });
      const { members, partitions, dead } = JSON.parse(show('--json')) as {
        members: { id: string; role: string }[];
        partitions: { owner: string; epoch: number; dead: number }[];
        dead: { partition: number; reason: string; bytes: string }[];
      };
      const schedulers = members.filter(({ role }) => role === 'scheduler').map(({ id }) => id);
      expect([members.length, schedulers.length, partitions.length, dead.length]).toEqual([6, 2, PARTITIONS, 2 * PARTITIONS]);
      expect(partitions.filter(({ owner, epoch, dead: count }) => !schedulers.includes(owner) || epoch < 1 || count !== 2)).toEqual([]);
      expect(dead.filter(({ bytes }) => bytes === Buffer.from('no entry').toString('base64'))).toHaveLength(PARTITIONS);
      expect(dead.map(({ reason }) => reason).join()).toMatch(/entry version: expected \d+, found 110/);
      expect(show()).toMatch(/^7 +\d+-0 +\S+Z +\d+ +.*entry version/m);
      const { schedulers: processes } = running.state;
      const counted = await Promise.all(processes.map(({ metrics }) => Scrape.of(`127.0.0.1:${metrics}`)));
      expect(counted.reduce((sum, scrape) => sum + scrape.sum(UNDECODABLE), 0)).toBe(2 * PARTITIONS);
      await end(load, running);
    },
    LIMIT_MS,
  );
});

describe('Redis over TLS', () => {
  it(
    'is believed with its authority alone',
    async () => {
      const tls = { ...(await authority.issue('redis')), caFile: authority.certificate.certFile };
      const redis = await startRedis({ password: 'secret', tls });
      stops.push(() => redis.stop());
      const flags = [`--redis-url=rediss://:secret@127.0.0.1:${redis.port}`];
      const refused = start(flags).then((unexpected) => unexpected.stop('SIGKILL'));
      await expect(refused).rejects.toThrow(/was not reached.*(certificate|issuer)/);
      const running = await start([...flags, `--redis-ca-file=${authority.certificate.certFile}`]);
      const load = loadAll(running);
      await answers(load, 20);
      await end(load, running);
    },
    LIMIT_MS,
  );
});

describe('Redis behind a Sentinel', () => {
  it(
    'fails over under load without an answer lost',
    async () => {
      const group = await startRedisSentinel({ password: 'secret' });
      stops.push(() => group.stop());
      const file = join(authority.folder, 'redis-password');
      writeFileSync(file, 'secret\n');
      const sentinel = ['--redis-mode=sentinel', `--redis-sentinel-master=${group.masterName}`, `--redis-password-file=${file}`];
      const running = await start([`--redis-url=${group.url}`, ...sentinel]);
      const load = loadAll(running);
      await answers(load, 20);
      await group.master.kill();
      await answers(load, 20);
      expect(await group.replica.command('INFO', 'replication')).toContain('role:master');
      await end(load, running);
      expect(withoutStreams(await leftovers([group.replica]))).toEqual(STATES);
    },
    LIMIT_MS,
  );
});

describe('Redis Cluster', () => {
  it(
    'has the partitions spread over its nodes, and fails over one of them under load',
    async () => {
      const group = await startRedisCluster({ withReplicas: true });
      stops.push(() => group.stop());
      const running = await start([`--redis-url=${group.urls.slice(0, 2).join(',')}`, '--redis-mode=cluster']);
      const load = loadAll(running);
      await answers(load, 20);
      for (const master of group.masters) expect(await master.command('KEYS', '*:owner')).not.toBe('');
      const [first, ...others] = group.masters;
      await first?.kill();
      await answers(load, 20);
      await until('the replica took over', 20_000, async () =>
        Boolean((await group.replicas[0]?.command('INFO', 'replication'))?.includes('role:master')),
      );
      await answers(load, 20);
      await end(load, running);
      const nodes = [...others, ...group.replicas.slice(0, 1)];
      expect(withoutStreams(await leftovers(nodes))).toEqual(STATES);
    },
    LIMIT_MS,
  );
});
