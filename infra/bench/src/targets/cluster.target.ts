/** A cluster as a user starts it on one machine, Redis included, all of it on the given cores. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLUSTER_ENTRY } from '../paths.js';
import { freePort } from './free-port.js';
import { endProcess, spawnPinned } from './pinned.js';
import { batchCounts, untilReady } from './server-process.js';
import type { Target } from './target.js';

export interface ClusterTargetOptions {
  readonly cores: number | readonly number[];
  readonly repository: string;
  /** Processes of each kind; default one. */
  readonly gateways?: number;
  readonly schedulers?: number;
  readonly workers?: number;
  readonly flags?: readonly string[];
}

/** As in the launcher's state file: those that run now. */
export interface ClusterProcesses {
  readonly redis: { readonly pid: number; readonly port: number };
  readonly gateways: readonly { readonly pid: number; readonly http: number; readonly grpc: number; readonly metrics: number }[];
  readonly schedulers: readonly { readonly pid: number; readonly metrics: number }[];
  readonly workers: readonly { readonly pid: number; readonly metrics: number }[];
}

export interface ClusterTarget extends Target {
  readonly processes: () => ClusterProcesses;
}

const READY_WITHIN_MS = 120_000;
const STOP_WITHIN_MS = 60_000;

function partsOf({ redis, gateways, schedulers, workers }: ClusterProcesses): ReadonlyMap<string, number> {
  const parts = new Map([['redis', redis.pid]]);
  for (const [kind, processes] of Object.entries({ gateway: gateways, scheduler: schedulers, worker: workers }))
    processes.forEach(({ pid }, i) => parts.set(processes.length === 1 ? kind : `${kind} ${i + 1}`, pid));
  return parts;
}

/** @throws Error with the end of the launcher's output when it is not ready in time. */
export async function startCluster(options: ClusterTargetOptions): Promise<ClusterTarget> {
  const folder = mkdtempSync(join(tmpdir(), 'paceline-bench-'));
  const stateFile = join(folder, 'processes.json');
  const [httpPort, grpcPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const numbers = {
    gateways: options.gateways ?? 1,
    schedulers: options.schedulers ?? 1,
    workers: options.workers ?? 1,
    'http-port': httpPort,
    'grpc-port': grpcPort,
    'metrics-port': metricsPort,
  };
  const child = spawnPinned(options.cores, [
    CLUSTER_ENTRY,
    ...Object.entries(numbers).map(([flag, value]) => `--${flag}=${value}`),
    `--model-repository=${options.repository}`,
    `--state-file=${stateFile}`,
    ...(options.flags ?? []),
  ]);
  const stop = async (): Promise<void> => {
    await endProcess(child, STOP_WITHIN_MS);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await untilReady(child, httpPort, READY_WITHIN_MS);
  } catch (error) {
    await stop();
    throw error;
  }
  const processes = (): ClusterProcesses => JSON.parse(readFileSync(stateFile, 'utf8')) as ClusterProcesses;
  return {
    name: 'cluster',
    pid: child.pid ?? 0,
    parts: () => partsOf(processes()),
    httpPort,
    grpcPort,
    batchCounts: (model) => batchCounts(httpPort, model),
    processes,
    stop,
  };
}
