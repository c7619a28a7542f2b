/**
 * A process that moves requests is woken for each of them, and Linux lets whoever wakes interrupt what runs. On a core
 * that is busy with inference every request then stops it, also those that are only to be refused or to wait. As a
 * SCHED_BATCH process (sched(7)) it waits until its turn comes, some milliseconds at most, and takes all that has come by
 * then at once; where a core is free nothing changes. Done by `chrt` of util-linux; without it nothing changes either.
 */
import { execFileSync } from 'node:child_process';
import { SCHED_OTHER, schedulingPolicyOf } from './process-stat.js';

const CHRT_LIMIT_MS = 2000;

/**
 * For all threads of this process and those to come; child processes inherit it. Whoever gave this process a policy of
 * its own has reasons: that is left alone.
 */
export function scheduleAsBatch(): void {
  if (schedulingPolicyOf('self') !== SCHED_OTHER) return;
  try {
    execFileSync('chrt', ['--all-tasks', '--batch', '--pid', '0', String(process.pid)], { stdio: 'ignore', timeout: CHRT_LIMIT_MS });
  } catch {
    // No chrt, or not allowed.
  }
}
