/** The embedded server as a user starts it, on one core with all its processes. */
import { freePort } from './free-port.js';
import { endProcess, spawnPinned } from './pinned.js';
import { batchCounts, nodeFlags, untilReady } from './server-process.js';
import type { Target } from './target.js';

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
  await untilReady(child, httpPort, options.readyWithinMs ?? 60_000);
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
