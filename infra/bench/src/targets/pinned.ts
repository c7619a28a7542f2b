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

const children = new Set<ChildProcess>();

function remember(child: ChildProcess): ChildProcess {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** However this process ends, what it started ends too. */
export function endChildrenWithThisProcess(): void {
  process.once('exit', () => {
    for (const child of children) child.kill('SIGTERM');
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
}

/** Ties this process, every thread of it, to `core`. */
export function pinSelf(core: number): void {
  if (CAN_PIN) execFileSync('taskset', ['-acp', String(core), String(process.pid)], { stdio: 'ignore' });
}

/** Starts a process of the benchmark, see `processFile`, with a message channel to it. */
export function forkPinned(core: number, name: string, args: readonly string[] = []): ChildProcess {
  const file = processFile(name);
  const pinned = { execPath: 'taskset', execArgv: ['-c', String(core), process.execPath] };
  return remember(fork(file, args, CAN_PIN ? pinned : {}));
}

/** Starts `node <args>` with its output captured, on one core or floating over some. */
export function spawnPinned(cores: number | readonly number[], args: readonly string[]): ChildProcess {
  const list = [cores].flat().join(',');
  const [command, ...rest] = CAN_PIN ? ['taskset', '-c', list, process.execPath, ...args] : [process.execPath, ...args];
  return remember(spawn(command ?? process.execPath, rest, { stdio: ['ignore', 'pipe', 'pipe'] }));
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
