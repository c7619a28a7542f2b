/**
 * A cluster as its users run it: the launcher and all processes under it, on free ports of the loopback interface, with a
 * Redis of its own. Owns them until `stop` has seen the launcher exit, and knows every process that ever belonged to it.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { descendants, isAlive } from '../support/process-tree.js';
import { until, within } from '../support/until.js';

const MAIN = fileURLToPath(new URL('../../../../infra/cluster/dist/main.js', import.meta.url));
const START_LIMIT_MS = 60_000;
const REPLACED_WITHIN_MS = 20_000;
const run = promisify(execFile);

export type Role = 'gateway' | 'scheduler' | 'worker';
export const ROLES: readonly Role[] = ['gateway', 'scheduler', 'worker'];

/** One process of the cluster, by its place: it keeps its ports over restarts, its id changes. */
export interface Member {
  readonly role: Role;
  /** From 0. */
  readonly index: number;
  readonly pid: number;
  readonly metrics: number;
  /** 0 but for a gateway. */
  readonly http: number;
  readonly grpc: number;
}

interface State {
  readonly redis: { readonly pid: number; readonly port: number };
  readonly gateways: readonly Omit<Member, 'role' | 'index'>[];
  readonly schedulers: readonly { readonly pid: number; readonly metrics: number }[];
  readonly workers: readonly { readonly pid: number; readonly metrics: number }[];
}

export interface ClusterSize {
  readonly gateways: number;
  readonly schedulers: number;
  readonly workers: number;
}

export class ClusterProcess {
  readonly log: string[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'cluster-under-test-'));
  readonly #stateFile = join(this.#folder, 'state.json');
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;
  readonly #everSeen = new Set<number>();
  #lastState: State | undefined;

  private constructor({ gateways, schedulers, workers }: ClusterSize, flags: readonly string[], env: NodeJS.ProcessEnv) {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} does not exist: build infra/cluster first`);
    const counts = [`--gateways=${gateways}`, `--schedulers=${schedulers}`, `--workers=${workers}`, `--state-file=${this.#stateFile}`];
    const ports = ['--http-port=0', '--grpc-port=0', '--metrics-port=0'];
    // A folder of its own for temporary files, so that what stays behind can be seen.
    const all = { ...process.env, TMPDIR: this.#folder, ...env };
    this.#child = spawn(process.execPath, [MAIN, ...counts, ...ports, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env: all });
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      createInterface({ input: stream }).on('line', (line) => this.log.push(line));
    this.#exited = new Promise((resolve) => this.#child.once('exit', (code) => resolve(code)));
  }

  /**
   * Starts a cluster and waits until all of it serves.
   * @param env beside this process's own
   * @throws Error with the cluster's output when it does not
   */
  static async start(size: ClusterSize, flags: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<ClusterProcess> {
    const cluster = new ClusterProcess(size, flags, env);
    try {
      let exit: number | null | undefined;
      void cluster.#exited.then((code) => (exit = code));
      await until('the cluster is ready', START_LIMIT_MS, () => {
        if (exit !== undefined) throw new Error(`the launcher ended with ${exit}`);
        return cluster.log.some((line) => line.startsWith('The cluster is ready'));
      });
      return cluster;
    } catch (cause) {
      await cluster.stop('SIGKILL');
      throw new Error(`the cluster did not start:\n${cluster.log.join('\n')}`, { cause });
    }
  }

  get #state(): State {
    if (existsSync(this.#stateFile)) this.#lastState = JSON.parse(readFileSync(this.#stateFile, 'utf8')) as State;
    const state = this.#lastState;
    if (state === undefined) throw new Error('the cluster has not written its state file');
    for (const { pid } of [state.redis, ...state.gateways, ...state.schedulers, ...state.workers])
      if (pid !== null) this.#everSeen.add(pid);
    return state;
  }

  get redis(): { readonly pid: number; readonly port: number } {
    return this.#state.redis;
  }

  members(role: Role): readonly Member[] {
    const plain = { http: 0, grpc: 0 };
    const { gateways, schedulers, workers } = this.#state;
    const all = { gateway: gateways, scheduler: schedulers, worker: workers }[role];
    return all.map((process, index) => ({ role, index, ...plain, ...process }));
  }

  get all(): readonly Member[] {
    return ROLES.flatMap((role) => this.members(role));
  }

  /** Whoever sits in the place of `member` now. */
  now(member: Member): Member {
    return this.members(member.role)[member.index]!;
  }

  /** Resolves with the process that took the place of `member`, as soon as it runs; it need not serve yet. */
  async replaced(member: Member): Promise<Member> {
    await until(`another ${nameOf(member)} runs`, REPLACED_WITHIN_MS, () => {
      const { pid } = this.now(member);
      return pid !== member.pid && isAlive(pid);
    });
    return this.now(member);
  }

  /** Resolves when each of `members`, or everybody, says that it serves. */
  async serves(limitMs: number, members: readonly Member[] = this.all): Promise<void> {
    const names = (list: readonly Member[]): string => list.map(nameOf).join(', ');
    let silent = members;
    await until('everything serves', limitMs, async () => {
      const answers = await Promise.all(silent.map(async (member) => ({ member, ready: await isReady(this.now(member)) })));
      silent = answers.filter(({ ready }) => !ready).map(({ member }) => member);
      return silent.length === 0;
    }).catch((cause: unknown) => {
      throw new Error(`not within ${limitMs} ms: ${names(silent)} serve(s)`, { cause });
    });
  }

  /** Runs one command through redis-cli. @throws where Redis does not answer, or answers an error */
  async redisCommand(...args: readonly string[]): Promise<string> {
    const { stdout } = await run('redis-cli', ['-e', '-p', String(this.redis.port), ...args], { timeout: 5000 });
    return stdout.trim();
  }

  /** Every process that belongs to the cluster now, the launcher's own included. */
  processes(): number[] {
    const found = [this.#child.pid!, ...descendants(this.#child.pid!)];
    for (const pid of found) this.#everSeen.add(pid);
    return found;
  }

  /** Processes that belonged to it at some time and still run. Asks of them what {@link processes} or the state file has shown. */
  survivors(): number[] {
    return [...this.#everSeen].filter(isAlive);
  }

  /** Names of temporary files that it left. */
  leftovers(): string[] {
    return existsSync(this.#folder) ? readdirSync(this.#folder) : [];
  }

  /** SIGTERM lets everything finish. Resolves with the launcher's exit code when it has ended; null = by a signal. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number | null> {
    const before = this.#child.exitCode === null && this.#child.signalCode === null ? this.processes() : [];
    this.#child.kill(signal);
    const code = await within('the launcher ends', 60_000, this.#exited);
    if (signal === 'SIGKILL') {
      for (const pid of before.filter(isAlive)) tryKill(pid);
      await until('no process is left', 10_000, () => !before.some(isAlive));
    }
    return code;
  }

  /** Removes its folder, once it has been looked into. */
  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export const nameOf = ({ role, index }: Member): string => `${role}-${index + 1}`;

async function isReady({ role, http, metrics }: Member): Promise<boolean> {
  const url = role === 'gateway' ? `http://127.0.0.1:${http}/v2/health/ready` : `http://127.0.0.1:${metrics}/ready`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
