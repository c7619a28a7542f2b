/**
 * A process that joins a cluster from outside its launcher, with a wall clock of its own: faketime sits between it and the
 * system, and the file that says by how much the clock is off can be changed while the process runs. Its monotonic clock is
 * untouched, as when an administrator or NTP sets the time of a machine.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '../support/until.js';
import type { Role } from './cluster-process.js';

const fromRoot = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
const START_LIMIT_MS = 30_000;

/** Where Debian puts it, by architecture. */
function findLibrary(): string | undefined {
  const root = '/usr/lib';
  const folders = existsSync(root) ? readdirSync(root).map((name) => join(root, name, 'faketime')) : [];
  return folders.map((folder) => join(folder, 'libfaketimeMT.so.1')).find((path) => existsSync(path));
}

/** The library of faketime; undefined where it is not installed. */
export const FAKETIME = findLibrary();

interface Runs {
  readonly time: string;
  readonly http?: string;
  readonly grpc?: string;
  readonly metrics?: string;
}

export class ShiftedProcess {
  readonly log: string[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'shifted-'));
  readonly #offsetFile = join(this.#folder, 'offset');
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;

  private constructor(command: string, args: readonly string[], offsetS: number, env: NodeJS.ProcessEnv) {
    this.shift(offsetS);
    const faketime = {
      LD_PRELOAD: FAKETIME,
      FAKETIME_TIMESTAMP_FILE: this.#offsetFile,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
    this.#child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env, ...faketime } });
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      createInterface({ input: stream }).on('line', (line) => this.log.push(line));
    this.#exited = new Promise((resolve) => this.#child.once('exit', () => resolve()));
  }

  /** @param offsetS by how much its clock is ahead at first, seconds */
  static async ofCluster(role: Role, flags: readonly string[], offsetS: number, env: NodeJS.ProcessEnv): Promise<ShiftedProcess> {
    const nodeFlags = readFileSync(fromRoot('apps/server/node.flags'), 'utf8').split(/\s+/).filter((flag) => flag !== ''); // prettier-ignore
    const ports = role === 'gateway' ? ['--http-port=0', '--grpc-port=0'] : [];
    const args = [...nodeFlags, fromRoot(`apps/${role}/dist/main.js`), ...flags, '--metrics-port=0', ...ports];
    const started = new ShiftedProcess(process.execPath, args, offsetS, env);
    await started.#until(`${role} runs`, () => started.#runs !== undefined);
    return started;
  }

  /** By how much its clock was ahead when it said that it runs, seconds, as seen now. */
  get saidOffsetS(): number {
    return (Date.parse(this.#runs?.time ?? '') - Date.now()) / 1000;
  }

  /** Ports of a gateway; `metrics` of any process. */
  get ports(): { readonly http: number; readonly grpc: number; readonly metrics: number } {
    const { http, grpc, metrics } = this.#runs ?? { time: '' };
    const portOf = (address = ''): number => Number(address.slice(address.lastIndexOf(':') + 1));
    return { http: portOf(http), grpc: portOf(grpc), metrics: portOf(metrics) };
  }

  /** Sets its clock. @param offsetS seconds ahead of the machine's; negative = behind */
  shift(offsetS: number): void {
    writeFileSync(this.#offsetFile, `${offsetS < 0 ? '' : '+'}${offsetS}\n`);
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #runs(): Runs | undefined {
    const line = this.log.find((text) => /"msg":"(gateway|scheduler|worker) runs"/.test(text));
    return line === undefined ? undefined : (JSON.parse(line) as Runs);
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    try {
      await until(what, START_LIMIT_MS, () => {
        if (this.#child.exitCode !== null) throw new Error(`it ended with exit code ${this.#child.exitCode}`);
        return holds();
      });
    } catch (cause) {
      await this.end();
      throw new Error(`${what}: no\n${this.log.join('\n')}`, { cause });
    }
  }
}
