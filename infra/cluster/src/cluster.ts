/**
 * The processes of one cluster: starts Redis and then the rest, keeps the state file and the guard informed, and ends all
 * of them in the order in which nobody misses another: gateways, schedulers, workers, Redis.
 */
import type { Clock } from '@paceline/clock';
import type { Role } from './arguments.js';
import type { OrphanGuard } from './orphan-guard.js';
import type { ProcessPlan } from './plan.js';
import { answers } from './probe.js';
import { redisAnswers } from './redis.js';
import { removeState, writeState } from './state-file.js';
import { SupervisedProcess, type ProcessListener, type ProcessSpec } from './supervised-process.js';

export interface ClusterOptions {
  readonly clock: Clock;
  /** Its own Redis; `pid` null and `spec` undefined for one of somebody else. */
  readonly redis: { readonly port: number; readonly spec: ProcessSpec | undefined };
  readonly processes: readonly ProcessPlan[];
  readonly env: NodeJS.ProcessEnv;
  readonly stateFile: string | undefined;
  readonly guard: OrphanGuard;
  /** How long the processes of one kind may take to drain. */
  readonly drainLimitUs: number;
  /** While something does not serve yet, it is named this often. */
  readonly remindEveryUs: number;
  readonly onLine: ProcessListener['onLine'];
  readonly say: (text: string) => void;
}

interface Member {
  readonly plan: ProcessPlan;
  readonly process: SupervisedProcess;
}

const PROBE_EVERY_US = 100_000;
const REDIS_EVERY_US = 20_000;
const DRAIN_ORDER: readonly Role[] = ['gateway', 'scheduler', 'worker'];

export class Cluster {
  readonly #redis: SupervisedProcess | undefined;
  readonly #members: readonly Member[];
  #ready = false;
  #stopping = false;
  #spawned = false;
  #giveUp: (reason: string) => void = () => undefined;

  constructor(private readonly options: ClusterOptions) {
    const listener: ProcessListener = {
      onStarted: () => this.#changed(),
      onDied: (name, how) => this.#died(name, how),
      onLine: options.onLine,
    };
    const supervise = (spec: ProcessSpec): SupervisedProcess => new SupervisedProcess(spec, listener, options.clock);
    this.#redis = options.redis.spec && supervise(options.redis.spec);
    this.#members = options.processes.map((plan) => ({
      plan,
      process: supervise({ name: plan.name, command: process.execPath, args: plan.args, env: options.env }),
    }));
  }

  /**
   * Resolves when every process serves, or with the reason why that will not be: one ended by itself. Never rejects.
   * A stop in between leaves it pending.
   */
  async start(): Promise<{ readonly ready: true } | { readonly ready: false; readonly reason: string }> {
    const failed = new Promise<{ ready: false; reason: string }>((resolve) => {
      this.#giveUp = (reason) => resolve({ ready: false, reason });
    });
    return Promise.race([failed, this.#startAll().then(() => ({ ready: true as const }))]);
  }

  async #startAll(): Promise<void> {
    const { redis } = this.options;
    this.#redis?.start();
    if (this.#redis) await this.#until(REDIS_EVERY_US, () => redisAnswers(redis.port));
    for (const { process } of this.#members) process.start();
    this.#spawned = true;
    this.#changed();
    const waiting = new Set(this.#members);
    const remind = (): void => {
      this.options.say(`still waiting for ${[...waiting].map(({ plan }) => plan.name).join(', ')}`);
      timer = this.options.clock.setTimer(this.options.remindEveryUs, remind);
    };
    let timer = this.options.clock.setTimer(this.options.remindEveryUs, remind);
    await Promise.all(this.#members.map((member) => this.#serves(member).then(() => waiting.delete(member))));
    timer.cancel();
    this.#ready = true;
  }

  async #serves({ plan: { probe }, process }: Member): Promise<void> {
    if (probe !== undefined) await this.#until(PROBE_EVERY_US, async () => process.running && (await answers(probe)));
  }

  /** Lets everything finish. @returns whether all ended by themselves, with exit code 0 */
  async drain(): Promise<boolean> {
    this.#stopping = true;
    let clean = true;
    for (const role of DRAIN_ORDER) {
      const group = this.#members.filter(({ plan }) => plan.role === role).map(({ process }) => process);
      // One that lies dead has nothing to finish.
      const alive = group.filter((process) => process.running);
      for (const process of group) process.stop('SIGTERM');
      await this.#allEnded(alive);
      clean &&= alive.every((process) => process.exitCode === 0);
    }
    await this.#end(this.#redis ? [this.#redis] : []);
    this.#close();
    return clean;
  }

  /** Ends everything at once. */
  async kill(): Promise<void> {
    this.#stopping = true;
    await this.#end([...this.#members.map(({ process }) => process), ...(this.#redis ? [this.#redis] : [])]);
    this.#close();
  }

  async #end(processes: readonly SupervisedProcess[]): Promise<void> {
    for (const process of processes) process.stop('SIGKILL');
    await Promise.all(processes.map((process) => process.ended));
  }

  async #allEnded(processes: readonly SupervisedProcess[]): Promise<void> {
    const timer = this.options.clock.setTimer(this.options.drainLimitUs, () => {
      for (const process of processes.filter(({ running }) => running)) {
        this.options.say(`${process.spec.name} did not finish in time and is ended`);
        process.stop('SIGKILL');
      }
    });
    await Promise.all(processes.map((process) => process.ended));
    timer.cancel();
  }

  #close(): void {
    if (this.options.stateFile !== undefined) removeState(this.options.stateFile);
    this.options.guard.close();
  }

  #died(name: string, { code, signal, error }: Parameters<ProcessListener['onDied']>[1]): void {
    const how = error ? `could not be started: ${error.message}` : signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
    this.#changed();
    // Before everything runs, one that gives up will do so again: flags, ports or models are not as they should be.
    if (!this.#ready && signal === null && code !== 0) this.#giveUp(`${name} ${how}`);
    else this.options.say(`${name} ${how} and is started again`);
  }

  /** After any start or end. The file is first written when every process has an id. */
  #changed(): void {
    if (this.#stopping) return;
    const alive = this.#members.filter(({ process }) => process.running).map(({ process }) => process.pid);
    this.options.guard.watch(alive, this.#redis?.running ? this.#redis.pid : undefined);
    if (!this.#spawned || this.options.stateFile === undefined) return;
    const of = (role: Role): readonly Member[] => this.#members.filter(({ plan }) => plan.role === role);
    const plain = ({ plan, process }: Member) => ({ pid: process.pid, metrics: plan.ports.metrics });
    writeState(this.options.stateFile, {
      redis: { pid: this.#redis?.pid ?? null, port: this.options.redis.port },
      gateways: of('gateway').map(({ plan: { ports }, process }) => ({ pid: process.pid, ...ports })),
      schedulers: of('scheduler').map(plain),
      workers: of('worker').map(plain),
    });
  }

  /** Asks again and again until the answer is yes; for ever, when the cluster stops before. */
  async #until(everyUs: number, ask: () => Promise<boolean>): Promise<void> {
    while (!(await ask()) || this.#stopping) await new Promise<void>((resolve) => this.options.clock.setTimer(everyUs, resolve));
  }
}
