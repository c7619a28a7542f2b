/** Starts the compiled worker as a process of its own and tells what it logs, for tests that kill it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

export interface StartedWorker {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly id: string;
  readonly address: string;
  readonly metrics: string;
  /** Resolves with the exit code; null = a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Every line that it has logged. */
  readonly lines: readonly string[];
}

/** @param redisUrl of a Redis that runs; @param flags further ones */
export async function startWorkerProcess(redisUrl: string, flags: readonly string[] = []): Promise<StartedWorker> {
  const entry = join(dirname(createRequire(import.meta.url).resolve('@paceline/worker')), 'main.js');
  const child = spawn(process.execPath, [entry, `--redis-url=${redisUrl}`, '--metrics-port=0', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const lines: string[] = [];
  const ready = Promise.withResolvers<{ id: string; address: string; metrics: string }>();
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(line);
    if (line.includes('worker runs')) ready.resolve(JSON.parse(line) as { id: string; address: string; metrics: string });
  });
  child.stdout.resume();
  void exited.then((code) => ready.reject(new Error(`the worker ended with ${code}:\n${lines.join('\n')}`)));
  const { id, address, metrics } = await ready.promise;
  return { child, pid: child.pid!, id, address, metrics, exited, lines };
}
