/** The bare servers that Paceline is held against: they speak the same protocol and infer nothing. */
import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import type { BenchModel } from '../models/catalog.js';
import { endProcess, forkPinned } from './pinned.js';
import type { Target } from './target.js';

async function bareTarget(name: string, child: ChildProcess): Promise<Target> {
  const [port] = (await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [0])])) as [number];
  if (port === 0) throw new Error(`${name} ended before it listened`);
  return {
    name,
    pid: child.pid ?? 0,
    httpPort: port,
    grpcPort: port,
    batchCounts: () => Promise.resolve(undefined),
    stop: () => endProcess(child),
  };
}

export function startBareHttp(core: number, model: BenchModel): Promise<Target> {
  return bareTarget(
    'bare node:http',
    forkPinned(core, 'targets/bare-http.main', [model.name, model.outputName, String(model.outputElements)]),
  );
}

export function startBareGrpc(core: number): Promise<Target> {
  return bareTarget('bare grpc-js echo', forkPinned(core, 'targets/bare-grpc.main'));
}
