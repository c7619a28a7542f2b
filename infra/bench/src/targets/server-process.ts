/** What starting the embedded server and starting a cluster have in common: Node's flags, readiness, statistics, control. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endProcess } from './pinned.js';
import type { BatchCounts } from './target.js';

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

/** Flags that the `paceline` command gives the server's Node: they lie beside the package's build. */
export function nodeFlags(entry: string): string[] {
  const file = join(dirname(entry), '..', 'node.flags');
  return existsSync(file)
    ? readFileSync(file, 'utf8')
        .split(/\s+/)
        .filter((flag) => flag !== '')
    : [];
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/v2/health/ready`)).ok;
  } catch {
    return false; // it does not listen yet
  }
}

/**
 * Resolves when the HTTP port says that it is ready; ends the process where that does not come.
 * @throws Error with the end of the process's output
 */
export async function untilReady(child: ChildProcess, httpPort: number, limitMs: number): Promise<void> {
  const startedAtMs = performance.now();
  const output = lastLines(child);
  const ended = once(child, 'exit').then(() => true);
  while (!(await isReady(httpPort))) {
    const over = performance.now() - startedAtMs > limitMs;
    if (over || (await Promise.race([ended, delay(20, false)]))) {
      await endProcess(child, 1000);
      throw new Error(`the server ${over ? `was not ready within ${limitMs} ms` : 'ended before it was ready'}; it printed:\n${output()}`);
    }
  }
}

export async function batchCounts(port: number, model: string): Promise<BatchCounts> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/stats`);
  const { model_stats: stats } = (await answer.json()) as { model_stats: { inference_count: number; execution_count: number }[] };
  return { inferences: Number(stats[0]?.inference_count), executions: Number(stats[0]?.execution_count) };
}
