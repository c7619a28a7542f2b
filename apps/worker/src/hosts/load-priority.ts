/**
 * Loading takes a core for as long as it lasts. A host that loads before it serves anybody therefore runs at a lower
 * priority, so that on a busy machine instances that answer requests go first; the longer the load takes, the more of the
 * processor it gets, so that it ends well before its limit however busy the machine is. Linux has two levers, of which only one
 * has an effect on a given machine: the niceness of a process and, where sessions share the processors as groups, that of
 * its group. A lever is used only where the system lets us move it back at once; else priorities are left alone.
 */
import { writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * Niceness of a load that began at least so long ago: on a busy core a quarter of it, at last a fair share. A tenth was
 * worse for those that answer: loads took three times as long.
 */
const STAGES = [
  { afterUs: 0, niceness: 5 },
  { afterUs: 15_000_000, niceness: 0 },
] as const;

interface Loading {
  readonly sinceUs: number;
  niceness: number;
}

/** Sets the niceness, from -20 to 19, of a process of its own session. @throws where that is not allowed */
type Lever = (pid: number, niceness: number) => void;

const LEVERS: readonly Lever[] = [setPriority, (pid, niceness) => writeFileSync(`/proc/${pid}/autogroup`, String(niceness))];

export class LoadPriority {
  readonly #normal = getPriority();
  #levers: readonly Lever[] | undefined;
  readonly #loading = new Map<number, Loading>();

  /** @param probe gives the process id of one whose priority does not matter, to find out what the system allows */
  constructor(private readonly probe: () => number | undefined) {}

  /** A host begins to load and serves nobody yet. */
  lower(pid: number | undefined, nowUs: number): void {
    const victim = this.#levers ? undefined : this.probe();
    if (victim !== undefined) this.#levers = LEVERS.filter((lever) => moved(lever, victim, 1 + this.#normal, this.#normal));
    if (pid === undefined) return;
    this.#loading.set(pid, { sinceUs: nowUs, niceness: -Infinity });
    this.ease(nowUs);
  }

  /** Gives the loads that last their larger share; to be called some times a second. */
  ease(nowUs: number): void {
    for (const [pid, loading] of this.#loading) {
      const stage = STAGES.findLast(({ afterUs }) => nowUs - loading.sinceUs >= afterUs) ?? STAGES[0];
      const niceness = Math.max(this.#normal, stage.niceness);
      if (niceness === loading.niceness) continue;
      loading.niceness = niceness;
      this.#set(pid, niceness);
    }
  }

  /** Its process is gone. */
  forget(pid: number | undefined): void {
    if (pid !== undefined) this.#loading.delete(pid);
  }

  /** It serves now. */
  restore(pid: number | undefined): void {
    if (pid !== undefined && this.#loading.delete(pid)) this.#set(pid, this.#normal);
  }

  #set(pid: number, niceness: number): void {
    for (const lever of this.#levers ?? []) moved(lever, pid, niceness);
  }
}

/** @returns whether each setting was taken: not where it is not allowed, nor by a process that has ended */
function moved(lever: Lever, pid: number, ...settings: readonly number[]): boolean {
  try {
    for (const niceness of settings) lever(pid, niceness);
    return true;
  } catch {
    return false;
  }
}
