/**
 * Loading takes a core for as long as it lasts. A host that loads before it serves anybody therefore runs at a lower
 * priority, so that on a busy machine instances that answer requests go first. Linux has two levers, of which only one
 * has an effect on a given machine: the niceness of a process and, where sessions share the processors as groups, that of
 * its group. A lever is used only where the system lets us move it back at once; else priorities are left alone.
 */
import { writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** A third of the share of others on a busy core: less would let a large load run into its time limit. */
const LOAD_NICENESS = 5;

/** Sets the niceness, from -20 to 19, of a process of its own session. @throws where that is not allowed */
type Lever = (pid: number, niceness: number) => void;

const LEVERS: readonly Lever[] = [setPriority, (pid, niceness) => writeFileSync(`/proc/${pid}/autogroup`, String(niceness))];

export class LoadPriority {
  readonly #normal = getPriority();
  #levers: readonly Lever[] | undefined;

  /** @param probe gives the process id of one whose priority does not matter, to find out what the system allows */
  constructor(private readonly probe: () => number | undefined) {}

  lower(pid: number | undefined): void {
    const victim = this.#levers ? undefined : this.probe();
    if (victim !== undefined) this.#levers = LEVERS.filter((lever) => moved(lever, victim, 1 + this.#normal, this.#normal));
    this.#set(pid, Math.max(this.#normal, LOAD_NICENESS));
  }

  restore(pid: number | undefined): void {
    this.#set(pid, this.#normal);
  }

  #set(pid: number | undefined, niceness: number): void {
    if (pid === undefined) return;
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
