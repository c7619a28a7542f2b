/**
 * What can be done to a cluster while it works. Each fault says what it excuses for as long as it lasts, strikes, and
 * resolves when what it did is undone; recovering from it is the cluster's affair and takes no longer than the caller allows.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Draw } from '../support/draw.js';
import { until } from '../support/until.js';
import type { Books, Excuse, Failure } from './books.js';
import { ROLES, type ClusterProcess, type Member, type Role } from './cluster-process.js';

export interface Fault {
  /** What it is, with what was drawn. */
  readonly name: string;
  /** Resolves with its excuse, to be ended by who has seen the cluster serve again; undefined = nothing may be noticed. */
  strike(cluster: ClusterProcess, books: Books): Promise<Excuse | undefined>;
}

/** Requests that a process of that kind may cost while it is away. What schedulers and workers had is done by others. */
const COSTS: Readonly<Record<Role, readonly Failure[]>> = { gateway: ['refused', 'unreached'], scheduler: [], worker: [] };
const LONGEST_STANDSTILL_MS = 6000;
const LONGEST_REDIS_STANDSTILL_MS = 10_000;
const REDIS_LISTENS_WITHIN_MS = 20_000;
const TINY_MEMORY_BYTES = '100000';

/** Whoever is to be struck may have ended by another fault. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Redis may be down or stopped by another fault: told as soon as it listens. */
function tellRedis(cluster: ClusterProcess, ...args: readonly string[]): Promise<void> {
  return until(`Redis takes ${args.join(' ')}`, REDIS_LISTENS_WITHIN_MS, () =>
    cluster.redisCommand(...args).then(
      () => true,
      () => false,
    ),
  );
}

function excuseOf(books: Books, what: string, member: Member, more: readonly Failure[] = []): Excuse | undefined {
  const allows = [...COSTS[member.role], ...more];
  return allows.length === 0 ? undefined : books.excuse(what, allows, member.role === 'gateway' ? member.index : undefined);
}

/** SIGKILL; the launcher starts another. */
export function killed(pick: (cluster: ClusterProcess) => Member, what: string): Fault {
  return {
    name: `${what} killed`,
    async strike(cluster, books) {
      const member = pick(cluster);
      // What a gateway held is gone with it, and its clients see their connections end.
      const excuse = excuseOf(books, `${what} killed`, member, member.role === 'gateway' ? ['cut'] : []);
      signal(member.pid, 'SIGKILL');
      await cluster.replaced(member);
      return excuse;
    },
  };
}

/** Process ids that have had their SIGTERM: a second one ends them at once. */
const toldToEnd = new Set<number>();

/** SIGTERM; it finishes what it has, and the launcher starts another. */
export function restarted(pick: (cluster: ClusterProcess) => Member, what: string): Fault {
  return {
    name: `${what} restarted`,
    async strike(cluster, books) {
      const member = pick(cluster);
      const isCut = member.role === 'gateway' && toldToEnd.has(member.pid);
      toldToEnd.add(member.pid);
      const ends: Failure = isCut ? 'cut' : 'unseen';
      const excuse = excuseOf(books, `${what} restarted`, member, member.role === 'gateway' ? [ends] : []);
      signal(member.pid, 'SIGTERM');
      await cluster.replaced(member);
      return excuse;
    },
  };
}

/** SIGSTOP, and SIGCONT after `ms`: it does not know that it was away. */
export function stopped(pick: (cluster: ClusterProcess) => Member, what: string, ms: number): Fault {
  const name = `${what} stopped for ${ms} ms`;
  return {
    name,
    async strike(cluster, books) {
      const member = pick(cluster);
      const excuse = excuseOf(books, `${what} stopped`, member);
      const goesOn = member.role === 'gateway' ? books.standstill(member.index) : () => undefined;
      signal(member.pid, 'SIGSTOP');
      await delay(ms);
      signal(member.pid, 'SIGCONT');
      goesOn();
      return excuse;
    },
  };
}

/** Redis comes back without anything that it knew. */
export const redisKilled: Fault = {
  name: 'Redis killed',
  async strike(cluster, books) {
    const { pid } = cluster.redis;
    const excuse = books.excuse('Redis killed', ['refused']);
    signal(pid, 'SIGKILL');
    await until('another Redis runs', 10_000, () => cluster.redis.pid !== pid);
    return excuse;
  },
};

export const redisEmptied: Fault = {
  name: 'Redis emptied',
  async strike(cluster, books) {
    const excuse = books.excuse('Redis emptied', ['refused']);
    await tellRedis(cluster, 'FLUSHALL');
    return excuse;
  },
};

export function redisStopped(ms: number): Fault {
  return {
    name: `Redis stopped for ${ms} ms`,
    async strike(cluster, books) {
      const { pid } = cluster.redis;
      const excuse = books.excuse('Redis stopped', ['refused']);
      signal(pid, 'SIGSTOP');
      await delay(ms);
      signal(pid, 'SIGCONT');
      return excuse;
    },
  };
}

/** Redis refuses whatever could take memory. */
export function redisFull(ms: number): Fault {
  return {
    name: `Redis full for ${ms} ms`,
    async strike(cluster, books) {
      const excuse = books.excuse('Redis full', ['refused']);
      await tellRedis(cluster, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction', 'maxmemory', TINY_MEMORY_BYTES);
      await delay(ms);
      await tellRedis(cluster, 'CONFIG', 'SET', 'maxmemory', '0');
      return excuse;
    },
  };
}

/** One fault, as the seed wants it. */
export function drawFault(draw: Draw): Fault {
  if (draw.chance(0.3)) {
    const ms = draw.int(500, LONGEST_REDIS_STANDSTILL_MS);
    return draw.pick([redisKilled, redisEmptied, redisStopped(ms), redisFull(Math.min(ms, LONGEST_STANDSTILL_MS))]);
  }
  const role = draw.pick(ROLES);
  const place = draw.unit();
  const pick = (cluster: ClusterProcess): Member => {
    const members = cluster.members(role);
    return members[Math.floor(place * members.length)]!;
  };
  const kind = draw.int(0, 2);
  if (kind === 0) return killed(pick, role);
  return kind === 1 ? restarted(pick, role) : stopped(pick, role, draw.int(500, LONGEST_STANDSTILL_MS));
}

/** Always the same one, e.g. of a focused test. */
export const theOne =
  (role: Role, index: number) =>
  (cluster: ClusterProcess): Member =>
    cluster.members(role)[index]!;
