/** A launcher started by a test: its output, its state file, what its programs noted, and no process left when it is over. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClusterState } from '../state-file.js';

const MAIN = fileURLToPath(new URL('../../dist/testing/fake-cluster.main.js', import.meta.url));
const LIMIT_MS = 15_000;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Launched {
  readonly folder = mkdtempSync(join(tmpdir(), 'paceline-launched-'));
  readonly stateFile = join(this.folder, 'state.json');
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  stdout = '';
  stderr = '';

  /** @param env beside this process's own */
  constructor(flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
    // Its own folder for temporary files, so that what stays behind can be seen.
    const all = { ...process.env, TMPDIR: this.folder, FAKE_EVENTS: join(this.folder, 'events'), PACELINE_LAUNCHER_PID: '1', ...env };
    const ports = ['--http-port=0', '--grpc-port=0', '--metrics-port=0'];
    const args = [MAIN, `--state-file=${this.stateFile}`, ...ports, ...flags];
    this.child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: all, detached: true });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.exited = new Promise((resolve) => this.child.once('close', (code, signal) => resolve({ code, signal })));
  }

  get state(): ClusterState {
    return JSON.parse(readFileSync(this.stateFile, 'utf8')) as ClusterState;
  }

  /** Every process of the cluster, Redis included. */
  get pids(): number[] {
    const { redis, gateways, schedulers, workers } = this.state;
    return [...(redis.pid === null ? [] : [redis.pid]), ...[...gateways, ...schedulers, ...workers].map(({ pid }) => pid)];
  }

  /** `role event`, in the order in which they were noted. */
  events(): { readonly role: string; readonly pid: number; readonly event: string }[] {
    const file = join(this.folder, 'events');
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [, role = '', pid = '', event = ''] = /^(\S+) (\d+) (.*)$/.exec(line) ?? [];
        return { role, pid: Number(pid), event };
      });
  }

  /** What the launcher left in its folder for temporary files. */
  leftovers(): string[] {
    return readdirSync(this.folder).filter((name) => name !== 'events');
  }

  async ready(): Promise<this> {
    await until(`the cluster is ready:\n${this.stderr}`, () => this.stdout.includes('The cluster is ready'));
    return this;
  }

  /** Ends whatever is left. */
  async end(): Promise<void> {
    const pids = this.leftovers().includes('state.json') ? this.pids : [];
    this.child.kill('SIGKILL');
    for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGKILL');
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/^\) Z/.test(stat.slice(stat.lastIndexOf(')')));
  } catch {
    return false;
  }
}

/** @throws Error naming what never came true */
export async function until(what: string, isTrue: () => boolean): Promise<void> {
  const lateMs = performance.now() + LIMIT_MS;
  while (!isTrue()) {
    if (performance.now() > lateMs) throw new Error(`not within ${LIMIT_MS} ms: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
