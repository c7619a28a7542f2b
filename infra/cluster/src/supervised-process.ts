/**
 * One process that is to run until it is told to end: started again one second after it has died, its output passed on
 * line by line under its name. It leads a process group of its own, so that Ctrl-C reaches it through the launcher only.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Clock, Timer } from '@paceline/clock';

export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export interface ProcessListener {
  /** It runs, for the first time or again. */
  onStarted(name: string, pid: number): void;
  /** It ended without being told to. `error`: it could not even be started. */
  onDied(name: string, how: { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly error?: Error }): void;
  onLine(name: string, stream: 'stdout' | 'stderr', line: string): void;
}

const RESTART_AFTER_US = 1_000_000;

export class SupervisedProcess {
  #child: ChildProcess | undefined;
  #restart: Timer | undefined;
  #stopping = false;
  #pid = 0;
  #exitCode: number | null = 0;
  readonly #endWaiters: (() => void)[] = [];

  constructor(
    readonly spec: ProcessSpec,
    private readonly listener: ProcessListener,
    private readonly clock: Clock,
  ) {}

  /** Of the process that runs, or that ran last; 0 before the first start. */
  get pid(): number {
    return this.#pid;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  /** How it ended last; null = by a signal. */
  get exitCode(): number | null {
    return this.#exitCode;
  }

  start(): void {
    if (this.#stopping) return;
    const { name, command, args, env } = this.spec;
    const child = spawn(command, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    for (const stream of ['stdout', 'stderr'] as const) {
      createInterface({ input: child[stream] }).on('line', (line) => this.listener.onLine(name, stream, line));
    }
    child.once('error', (error) => this.#ended(child, { code: null, signal: null, error }));
    // 'exit' and not 'close': a child of its own may hold the pipes for longer.
    child.once('exit', (code, signal) => this.#ended(child, { code, signal }));
    if (child.pid === undefined) return;
    this.#pid = child.pid;
    this.listener.onStarted(name, child.pid);
  }

  /** Tells it to end, wakes it if it was stopped, and does not start it again. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#stopping = true;
    this.#restart?.cancel();
    this.#child?.kill(signal);
    this.#child?.kill('SIGCONT');
  }

  /** Resolves when no process of it runs. */
  get ended(): Promise<void> {
    return this.#child === undefined ? Promise.resolve() : new Promise((resolve) => this.#endWaiters.push(resolve));
  }

  #ended(child: ChildProcess, how: Parameters<ProcessListener['onDied']>[1]): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#exitCode = how.code;
    for (const waiter of this.#endWaiters.splice(0)) waiter();
    if (this.#stopping) return;
    this.#restart = this.clock.setTimer(RESTART_AFTER_US, () => this.start());
    this.listener.onDied(this.spec.name, how);
  }
}
