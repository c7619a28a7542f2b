/** The embedded server as a user starts it, on one core with all its processes. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.js';
import { endProcess, spawnPinned } from './pinned.js';
import type { BatchCounts, Target } from './target.js';

export interface PacelineOptions {
  /** The server's compiled entry file. */
  readonly entry: string;
  readonly core: number;
  readonly repository: string;
  readonly flags?: readonly string[];
  readonly readyWithinMs?: number;
}

export interface PacelineTarget extends Target {
  /** From the start of the process to the first "ready". */
  readonly readyAfterMs: number;
  /** @throws Error with the server's text if it refuses. */
  readonly control: (model: string, action: 'load' | 'unload') => Promise<void>;
}

const KEPT_LINES = 40;

/** Keeps the end of what the process prints, for the message when it fails. */
function lastLines(child: ChildProcess): () => string {
  let lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      lines = [...lines, ...text.split('\n').filter((line) => line !== '')].slice(-KEPT_LINES);
    });
  }
  return () => lines.join('\n');
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/v2/health/ready`)).ok;
  } catch {
    return false; // it does not listen yet
  }
}

async function batchCounts(port: number, model: string): Promise<BatchCounts> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/stats`);
  const { model_stats: stats } = (await answer.json()) as { model_stats: { inference_count: number; execution_count: number }[] };
  return { inferences: Number(stats[0]?.inference_count), executions: Number(stats[0]?.execution_count) };
}

/** Flags that the `paceline` command gives the server's Node: they lie beside the package's build. */
function nodeFlags(entry: string): string[] {
  const file = join(dirname(entry), '..', 'node.flags');
  return existsSync(file)
    ? readFileSync(file, 'utf8')
        .split(/\s+/)
        .filter((flag) => flag !== '')
    : [];
}

/** @throws Error with the end of the server's output when it is not ready in time. */
export async function startPaceline(options: PacelineOptions): Promise<PacelineTarget> {
  const [httpPort, grpcPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const ports = ['--http-port', httpPort, '--grpc-port', grpcPort, '--metrics-port', metricsPort].map(String);
  const startedAtMs = performance.now();
  const child = spawnPinned(options.core, [
    ...nodeFlags(options.entry),
    options.entry,
    '--model-repository',
    options.repository,
    ...ports,
    ...(options.flags ?? []),
  ]);
  const output = lastLines(child);
  const ended = once(child, 'exit').then(() => true);
  const limitMs = options.readyWithinMs ?? 60_000;
  while (!(await isReady(httpPort))) {
    const over = performance.now() - startedAtMs > limitMs;
    if (over || (await Promise.race([ended, delay(20, false)]))) {
      await endProcess(child, 1000);
      throw new Error(`the server ${over ? `was not ready within ${limitMs} ms` : 'ended before it was ready'}; it printed:\n${output()}`);
    }
  }
  return {
    name: 'paceline',
    pid: child.pid ?? 0,
    httpPort,
    grpcPort,
    readyAfterMs: performance.now() - startedAtMs,
    batchCounts: (model) => batchCounts(httpPort, model),
    control: async (model, action) => {
      const answer = await fetch(`http://127.0.0.1:${httpPort}/v2/repository/models/${model}/${action}`, { method: 'POST' });
      if (!answer.ok) throw new Error(`${action} of ${model}: ${await answer.text()}`);
      await answer.arrayBuffer();
    },
    stop: () => endProcess(child),
  };
}
