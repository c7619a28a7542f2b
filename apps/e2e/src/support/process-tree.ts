/** What a server's process tree is made of and takes, read from /proc: the test's own view, not the server's. */
import { readdirSync, readFileSync } from 'node:fs';

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process ended while we were looking
  }
}

/** The fields of `/proc/PID/stat` behind the name, which may hold spaces; see proc(5). */
function statOf(pid: number): readonly string[] {
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Ids of `root`'s descendants, itself excluded. */
export function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = Number(statOf(Number(entry))[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const below = (pid: number): number[] => (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(root);
}

/** Ids of the instance hosts of a server: its descendants that run Node. */
export function instanceHosts(server: number): number[] {
  return descendants(server).filter((pid) => readOrEmpty(`/proc/${pid}/cmdline`).split('\u0000')[0]?.endsWith('node'));
}

/** The number of the scheduling policy of a process's main thread: 0 = SCHED_OTHER, 3 = SCHED_BATCH. */
export function schedulingPolicy(pid: number): number {
  return Number(statOf(pid)[38]);
}

export function isAlive(pid: number): boolean {
  const [state = ''] = statOf(pid);
  return state !== '' && state !== 'Z';
}

/** Proportional set size of the whole tree: shared pages are divided among those who share them. */
export function treeBytes(root: number): number {
  return [root, ...descendants(root)]
    .map((pid) => Number(/^Pss:\s+(\d+)/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) * 1024)
    .reduce((sum, bytes) => sum + bytes, 0);
}
