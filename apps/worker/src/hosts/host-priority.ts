/**
 * How the system schedules the hosts. They compute: where this process waits for its turn (a batch process, see
 * batch-scheduling.ts) they are made ordinary ones again.
 *
 * Loading takes a core for as long as it lasts. A host that loads beside others that answer requests therefore gets only
 * the processor time that nobody else wants (SCHED_IDLE): it gives way at once, where a process of a lower niceness would
 * first use up its slice and slow every batch down. A load that takes long gets its fair share after a while, so that it
 * ends well before its limit however busy the machine is. Done by `chrt` of util-linux, and only where the system lets us
 * take it back (CAP_SYS_NICE or a limit of niceness that allows it); else priorities are left alone.
 */
import { execFile } from 'node:child_process';
import { SCHED_BATCH, SCHED_OTHER, schedulingPolicyOf } from '@paceline/nest-kit';

/** For so long a load gives way to everybody. */
const GIVES_WAY_US = 15_000_000;

/** How a process is scheduled: when nobody else wants to run, or as any other. */
export type SchedulingPolicy = 'idle' | 'other';

/** What the system lets this process do; nothing here rejects. */
export interface Scheduling {
  /** Whether this process waits for its turn, and its children with it. */
  inheritsBatch(): boolean;
  /** Whether a process can be made idle and as others again. */
  canTakeBack(): Promise<boolean>;
  /** For all threads of the process. */
  set(pid: number, policy: SchedulingPolicy): Promise<unknown>;
}

interface Loading {
  readonly sinceUs: number;
  policy: SchedulingPolicy;
}

export class HostPriority {
  #possible: Promise<boolean> | undefined;
  readonly #loading = new Map<number, Loading>();
  /** What was asked of the system last: one change after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly system: Scheduling = LINUX) {}

  /** A host has started. */
  started(pid: number | undefined): void {
    if (pid === undefined || !this.system.inheritsBatch()) return;
    this.#change(async () => void (await this.system.set(pid, 'other')));
  }

  /** A host begins to load and serves nobody yet. */
  lower(pid: number | undefined, nowUs: number): void {
    if (pid === undefined) return;
    const loading: Loading = { sinceUs: nowUs, policy: 'idle' };
    this.#loading.set(pid, loading);
    this.#change(async () => {
      if (!(await this.#isPossible()) || this.#loading.get(pid) !== loading) return;
      await this.system.set(pid, loading.policy);
    });
  }

  /** Gives the loads that last their share; to be called some times a second. */
  ease(nowUs: number): void {
    for (const [pid, loading] of this.#loading) {
      if (loading.policy === 'other' || nowUs - loading.sinceUs < GIVES_WAY_US) continue;
      loading.policy = 'other';
      this.#raise(pid);
    }
  }

  /** Its process is gone. */
  forget(pid: number | undefined): void {
    if (pid !== undefined) this.#loading.delete(pid);
  }

  /** It serves now. */
  restore(pid: number | undefined): void {
    if (pid === undefined) return;
    const loading = this.#loading.get(pid);
    if (this.#loading.delete(pid) && loading?.policy === 'idle') this.#raise(pid);
  }

  /** Resolves when everything that was asked for has been done. */
  get settled(): Promise<unknown> {
    return this.#last;
  }

  #raise(pid: number): void {
    this.#change(async () => {
      if (await this.#isPossible()) await this.system.set(pid, 'other');
    });
  }

  #change(step: () => Promise<void>): void {
    this.#last = this.#last.then(step);
  }

  #isPossible(): Promise<boolean> {
    return (this.#possible ??= this.system.canTakeBack());
  }
}

/** @returns whether it succeeded */
const chrt = (...args: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    execFile('chrt', args, (error) => resolve(error === null));
  });

const LINUX: Scheduling = {
  inheritsBatch: () => schedulingPolicyOf('self') === SCHED_BATCH,
  // Whoever gave this process another policy has reasons, which its hosts share. Else a shell of no importance is made idle
  // and tries to be as before.
  canTakeBack: async () =>
    [SCHED_OTHER, SCHED_BATCH].includes(schedulingPolicyOf('self')) && chrt('--idle', '0', 'sh', '-c', 'exec chrt --other --pid 0 $$'),
  set: (pid, policy) => chrt('--all-tasks', `--${policy}`, '--pid', '0', String(pid)),
};
