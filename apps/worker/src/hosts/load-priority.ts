/**
 * Loading takes a core for as long as it lasts. A host that loads beside others that answer requests therefore gets only
 * the processor time that nobody else wants (SCHED_IDLE): it gives way at once, where a process of a lower niceness would
 * first use up its slice and slow every batch down. A load that takes long gets its fair share after a while, so that it
 * ends well before its limit however busy the machine is. Done by `chrt` of util-linux, and only where the system lets us
 * take it back (CAP_SYS_NICE or a limit of niceness that allows it); else priorities are left alone.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** For so long a load gives way to everybody. */
const GIVES_WAY_US = 15_000_000;

/** How a process is scheduled: when nobody else wants to run, or as any other. */
export type SchedulingPolicy = 'idle' | 'other';

/** Resolves with whether the system took it, for all threads of the process; never rejects. */
export type SetPolicy = (pid: number, policy: SchedulingPolicy) => Promise<boolean>;

interface Loading {
  readonly sinceUs: number;
  policy: SchedulingPolicy;
}

export class LoadPriority {
  #possible: Promise<boolean> | undefined;
  readonly #loading = new Map<number, Loading>();
  /** What was asked of the system last: one change after the other. */
  #last: Promise<unknown> = Promise.resolve();

  /**
   * @param probe gives the process id of one whose priority does not matter, to find out what the system allows
   * @param set changes the policy of a process
   */
  constructor(
    private readonly probe: () => number | undefined,
    private readonly set: SetPolicy = changePolicy,
  ) {}

  /** A host begins to load and serves nobody yet. */
  lower(pid: number | undefined, nowUs: number): void {
    if (pid === undefined) return;
    const loading: Loading = { sinceUs: nowUs, policy: 'idle' };
    this.#loading.set(pid, loading);
    this.#change(async () => {
      if (!(await this.#isPossible()) || this.#loading.get(pid) !== loading) return;
      await this.set(pid, loading.policy);
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
      if (await this.#isPossible()) await this.set(pid, 'other');
    });
  }

  #change(step: () => Promise<void>): void {
    this.#last = this.#last.then(step);
  }

  #isPossible(): Promise<boolean> {
    return (this.#possible ??= this.#try());
  }

  async #try(): Promise<boolean> {
    const victim = this.probe();
    if (victim === undefined || !isScheduledAsUsual()) return false;
    return (await this.set(victim, 'idle')) && this.set(victim, 'other');
  }
}

/** Whoever gave this process a policy of its own has reasons, which its hosts share. */
function isScheduledAsUsual(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // Field 41 of proc(5), the 39th behind the name, which may hold spaces; 0 = SCHED_OTHER.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38] === '0';
  } catch {
    return false;
  }
}

const changePolicy: SetPolicy = (pid, policy) =>
  new Promise((resolve) => {
    execFile('chrt', ['--all-tasks', `--${policy}`, '--pid', '0', String(pid)], (error) => resolve(error === null));
  });
