/** What Linux says of a process, see proc(5). */
import { readFileSync } from 'node:fs';

/** In `/proc/PID/stat`, counted from the field behind the name. */
const STATE = 0;
const POLICY = 38;

/** Numbers of scheduling policies. */
export const SCHED_OTHER = 0;
export const SCHED_BATCH = 3;
export const SCHED_IDLE = 5;

/** @returns the fields behind its name, which may hold spaces; empty where there is no such process */
function statOf(pid: number | 'self' | undefined): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

/** Whether a signal has stopped the process. */
export function isStopped(pid: number | undefined): boolean {
  return statOf(pid)[STATE] === 'T';
}

/** The number of its scheduling policy; NaN where there is no such process. */
export function schedulingPolicyOf(pid: number | 'self' | undefined): number {
  return Number(statOf(pid)[POLICY]);
}
