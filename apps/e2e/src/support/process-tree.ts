/** What a server's process tree is made of and takes, read from /proc: the test's own view, not the server's. */
import { readdirSync, readFileSync } from 'node:fs';

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process ended while we were looking
  }
}

/** Ids of `root`'s descendants, itself excluded. */
export function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readOrEmpty(`/proc/${entry}/stat`);
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
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
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38]);
}

export function isAlive(pid: number): boolean {
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  return stat !== '' && stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
}

/** Proportional set size of the whole tree: shared pages are divided among those who share them. */
export function treeBytes(root: number): number {
  return [root, ...descendants(root)]
    .map((pid) => Number(/^Pss:\s+(\d+)/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) * 1024)
    .reduce((sum, bytes) => sum + bytes, 0);
}
