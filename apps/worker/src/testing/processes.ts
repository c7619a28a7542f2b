/** What the system says of processes, for tests about what is left behind. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** Whether the process runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Polls until `done`; the process table tells nobody when it changes. @throws Error naming `what` after `deadlineMs` */
export async function until(what: string, done: () => boolean, deadlineMs = 10_000): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!done()) {
    if (performance.now() > end) throw new Error(`${what}: not after ${deadlineMs} ms`);
    await pause(10);
  }
}

export function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

/** Processes whose parent is this one, or the given one. */
export function children(parent = process.pid): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return new RegExp(`^PPid:\\s+${parent}$`, 'm').test(readFileSync(`/proc/${pid}/status`, 'utf8'));
      } catch {
        return false;
      }
    });
}
