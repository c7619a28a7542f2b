/** CPU time and memory of a process and everything below it, from /proc. Elsewhere than on Linux both are NaN. */
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ: fixed at 100 for every architecture Linux offers to programs. */
const TICKS_PER_S = 100;

export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly cpuTicks: number;
}

/** Parses /proc/<pid>/stat. The name in brackets may itself hold spaces and brackets, so fields count from the last one. */
export function parseStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { pid: Number.parseInt(text, 10), parent: Number(fields[1]), cpuTicks: Number(fields[11]) + Number(fields[12]) };
}

function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // the process ended meanwhile
  }
}

function allProcesses(): ProcessStat[] {
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return [];
  }
  return names
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const text = readOrUndefined(`/proc/${name}/stat`);
      return text === undefined ? [] : [parseStat(text)];
    });
}

/** `root` and its descendants among `processes`. */
export function treeOf(root: number, processes: readonly ProcessStat[]): ProcessStat[] {
  const members = new Map<number, ProcessStat>();
  const add = (stat: ProcessStat): void => {
    members.set(stat.pid, stat);
    for (const other of processes) if (other.parent === stat.pid && !members.has(other.pid)) add(other);
  };
  const start = processes.find((stat) => stat.pid === root);
  if (start !== undefined) add(start);
  return [...members.values()];
}

/** User and system time of the living tree, seconds. */
export function treeCpuSeconds(root: number): number {
  const tree = treeOf(root, allProcesses());
  return tree.length === 0 ? Number.NaN : tree.reduce((sum, stat) => sum + stat.cpuTicks, 0) / TICKS_PER_S;
}

/** User and system time of one process, seconds. */
export function processCpuSeconds(pid: number): number {
  const text = readOrUndefined(`/proc/${pid}/stat`);
  return text === undefined ? Number.NaN : parseStat(text).cpuTicks / TICKS_PER_S;
}

/** The processes below `root` that run Node: the hosts of a server's instances. */
export function nodeProcessesBelow(root: number): number[] {
  return treeOf(root, allProcesses())
    .map(({ pid }) => pid)
    .filter((pid) => pid !== root && readOrUndefined(`/proc/${pid}/cmdline`)?.split('\0')[0]?.endsWith('node'));
}

export interface TreeMemory {
  /** Proportional set size: shared pages are divided among the processes that share them. */
  readonly pssBytes: number;
  readonly processes: number;
}

export function treeMemory(root: number): TreeMemory {
  const tree = treeOf(root, allProcesses());
  let pssKib = tree.length === 0 ? Number.NaN : 0;
  for (const { pid } of tree) {
    const found = /^Pss:\s+(\d+)/m.exec(readOrUndefined(`/proc/${pid}/smaps_rollup`) ?? '');
    pssKib += Number(found?.[1] ?? 0);
  }
  return { pssBytes: pssKib * 1024, processes: tree.length };
}
