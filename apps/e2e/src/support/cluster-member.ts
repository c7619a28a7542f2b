/** One process of a cluster that a test starts beside those of the launcher, e.g. one that should not get in. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface ClusterMember {
  readonly child: ChildProcess;
  /** Lines of both outputs so far. */
  readonly log: readonly string[];
  /** Resolves with the exit code; null = ended by a signal. */
  readonly exited: Promise<number | null>;
}

/** @param env beside this process's own; undefined takes a variable out */
export function startMember(
  app: 'gateway' | 'scheduler' | 'worker',
  flags: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): ClusterMember {
  const main = fileURLToPath(new URL(`../../../${app}/dist/main.js`, import.meta.url));
  const ports = ['--http-port=0', '--grpc-port=0', '--metrics-port=0'];
  const child = spawn(process.execPath, [main, ...ports, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', (line) => log.push(line));
  return { child, log, exited: new Promise((resolve) => child.once('close', (code) => resolve(code))) };
}
