/** Child processes tied to one core. Where there is no `taskset` they float, and the run says so. */
import { execFileSync, fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { processFile } from '../paths.js';

export const CAN_PIN: boolean = (() => {
  try {
    execFileSync('taskset', ['-V'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** Ties this process, every thread of it, to `core`. */
export function pinSelf(core: number): void {
  if (CAN_PIN) execFileSync('taskset', ['-acp', String(core), String(process.pid)], { stdio: 'ignore' });
}

/** Starts a process of the benchmark, see `processFile`, with a message channel to it. */
export function forkPinned(core: number, name: string, args: readonly string[] = []): ChildProcess {
  const file = processFile(name);
  if (!CAN_PIN) return fork(file, args);
  return fork(file, args, { execPath: 'taskset', execArgv: ['-c', String(core), process.execPath] });
}

/** Starts `node <args>` with its output captured. */
export function spawnPinned(core: number, args: readonly string[]): ChildProcess {
  const [command, ...rest] = CAN_PIN ? ['taskset', '-c', String(core), process.execPath, ...args] : [process.execPath, ...args];
  return spawn(command ?? process.execPath, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Asks the process to end and waits until it has; kills it after `graceMs`. */
export async function endProcess(child: ChildProcess, graceMs = 10_000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await exited;
  clearTimeout(timer);
}
