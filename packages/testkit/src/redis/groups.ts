/** Several real Redis processes that stand in for each other: a master with a replica under a sentinel, and a cluster. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endProcess, freePort, portSettings, spawnServer, startRedis, type RedisServer, type StartRedisOptions } from './server.js';

export interface RedisSentinelGroup {
  /** Of the sentinel. */
  readonly url: string;
  /** The name that it knows the master by. */
  readonly masterName: string;
  /** Master at first; after a failover ask the servers themselves. */
  readonly master: RedisServer;
  readonly replica: RedisServer;
  stop(): Promise<void>;
}

export interface RedisClusterGroup {
  /** Of all nodes. */
  readonly urls: readonly string[];
  /** Three masters, each with a third of the slots in order, at first. */
  readonly masters: readonly RedisServer[];
  /** In the order of their masters; empty where none were asked for. */
  readonly replicas: readonly RedisServer[];
  stop(): Promise<void>;
}

const MASTER_NAME = 'test-master';
/** After so long a silence a server counts as dead: not so short that a busy machine looks like it. */
const DOWN_AFTER_MS = 1200;
const READY_LIMIT_MS = 20_000;
const LOOK_EACH_MS = 20;
const SLOTS = 16_384;
const MASTERS = 3;

/** A master, its replica and one sentinel, which fails over within about two seconds. The password is that of both servers. */
export async function startRedisSentinel(options: Pick<StartRedisOptions, 'password' | 'tls'> = {}): Promise<RedisSentinelGroup> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const master = await startRedis({ ...options, args: ['--repl-diskless-sync-delay', '0'] });
    stops.push(() => master.stop());
    const replica = await startRedis({ ...options, args: ['--replicaof', '127.0.0.1', `${master.port}`] });
    stops.push(() => replica.stop());
    await until('the replica follows', async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'));
    const folder = mkdtempSync(join(tmpdir(), 'paceline-sentinel-'));
    stops.push(() => Promise.resolve(rmSync(folder, { recursive: true, force: true })));
    const port = await freePort();
    const sentinel = await startSentinel(folder, port, master.port, options);
    stops.push(() => endProcess(sentinel));
    return { url: `${options.tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`, masterName: MASTER_NAME, master, replica, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startSentinel(
  folder: string,
  port: number,
  masterPort: number,
  { password, tls }: Pick<StartRedisOptions, 'password' | 'tls'>,
): Promise<ChildProcess> {
  const file = join(folder, 'sentinel.conf');
  const lines = [
    ...portSettings(port, tls).map((setting) => setting.join(' ')),
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 1`,
    `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER_NAME} 3000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${MASTER_NAME} ${password}`]),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return spawnServer([file, '--sentinel'], /\+slave slave/);
}

/** Password and files are those of all nodes. */
export interface StartRedisClusterOptions extends Pick<StartRedisOptions, 'password' | 'tls'> {
  /** A replica for each master, which takes over within a few seconds. */
  readonly withReplicas?: boolean;
}

/** Three masters. */
export async function startRedisCluster({ withReplicas = false, ...options }: StartRedisClusterOptions = {}): Promise<RedisClusterGroup> {
  const nodes: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    for (const node of nodes.splice(0)) await node.stop();
  };
  try {
    const count = withReplicas ? 2 * MASTERS : MASTERS;
    const buses: number[] = [];
    for (let index = 0; index < count; index++) {
      const bus = await freePort();
      const args = ['--cluster-enabled', 'yes', '--cluster-port', `${bus}`, '--cluster-node-timeout', `${DOWN_AFTER_MS}`];
      if (options.tls) args.push('--tls-cluster', 'yes');
      // The slots that are covered are served, whatever becomes of the others.
      args.push('--cluster-require-full-coverage', 'no', '--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0');
      nodes.push(await startRedis({ ...options, args }));
      buses.push(bus);
    }
    const masters = nodes.slice(0, MASTERS);
    const replicas = nodes.slice(MASTERS);
    const [meeting] = nodes;
    for (const [index, node] of nodes.entries()) {
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`);
      if (meeting && node !== meeting) await node.command('CLUSTER', 'MEET', '127.0.0.1', `${meeting.port}`, `${buses[0]}`);
    }
    for (const [index, master] of masters.entries()) {
      const from = Math.ceil((index * SLOTS) / MASTERS);
      const to = Math.ceil(((index + 1) * SLOTS) / MASTERS) - 1;
      await master.command('CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to}`);
    }
    await Promise.all(nodes.map((node) => until('the nodes know each other', () => knowsAll(node, count))));
    for (const [index, replica] of replicas.entries()) {
      const id = (await masters[index]?.command('CLUSTER', 'MYID')) ?? '';
      await until('a replica is taken', () =>
        replica.command('CLUSTER', 'REPLICATE', id).then(
          () => true,
          () => false,
        ),
      );
    }
    await Promise.all(nodes.map((node) => until('the cluster is ready', () => isReady(node))));
    return { urls: nodes.map(({ url }) => url), masters, replicas, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function knowsAll(node: RedisServer, count: number): Promise<boolean> {
  const nodes = (await node.command('CLUSTER', 'NODES')).split('\n');
  return nodes.filter((line) => / connected/.test(line) && !/handshake|fail/.test(line)).length === count;
}

async function isReady(node: RedisServer): Promise<boolean> {
  const info = await node.command('CLUSTER', 'INFO');
  const replication = await node.command('INFO', 'replication');
  return info.includes('cluster_state:ok') && (replication.includes('role:master') || replication.includes('master_link_status:up'));
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const limit = performance.now() + READY_LIMIT_MS;
  while (!(await holds())) {
    if (performance.now() > limit) throw new Error(`not within ${READY_LIMIT_MS} ms: ${what}`);
    await delay(LOOK_EACH_MS);
  }
}
