/**
 * A cluster as its users run it: the launcher with its whole tree, on free ports of the loopback interface. Owns the
 * launcher until `stop` has seen it exit; processes of the cluster that are killed are started again by it.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../../infra/cluster/dist/main.js', import.meta.url));

/** What the launcher keeps in its state file. */
export interface ClusterState {
  readonly redis: { readonly pid: number | null; readonly port: number };
  readonly gateways: readonly { readonly pid: number; readonly http: number; readonly grpc: number; readonly metrics: number }[];
  readonly schedulers: readonly { readonly pid: number; readonly metrics: number }[];
  readonly workers: readonly { readonly pid: number; readonly metrics: number }[];
}

export interface ClusterProcess {
  /** Of the launcher. */
  readonly pid: number;
  /** As it is now: process ids change when something is started again. */
  readonly state: ClusterState;
  /** `host:port` of each gateway. */
  readonly http: readonly string[];
  readonly grpc: readonly string[];
  /** Everything that was printed so far, by line, each behind the name of its process. */
  readonly log: readonly string[];
  /** Sends `signal` to the launcher and resolves with its exit code (null = ended by a signal). */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/**
 * Starts a cluster and waits until it serves.
 * @param env beside this process's own
 * @throws Error with the launcher's output when it exits before
 */
export async function startCluster(flags: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<ClusterProcess> {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} does not exist: build infra/cluster first`);
  const folder = mkdtempSync(join(tmpdir(), 'paceline-e2e-cluster-'));
  const stateFile = join(folder, 'state.json');
  const ports = ['--http-port=0', '--grpc-port=0', '--metrics-port=0'];
  const child = spawn(process.execPath, [MAIN, `--state-file=${stateFile}`, ...ports, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const log: string[] = [];
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  void exited.then(() => rmSync(folder, { recursive: true, force: true }));
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        log.push(line);
        if (line.startsWith('The cluster is ready')) resolve();
      });
    }
    void exited.then((code) => reject(new Error(`the cluster ended with ${code} before it served:\n${log.join('\n')}`)));
  });
  const state = (): ClusterState => JSON.parse(readFileSync(stateFile, 'utf8')) as ClusterState;
  return {
    pid: child.pid ?? 0,
    get state() {
      return state();
    },
    http: state().gateways.map(({ http }) => `127.0.0.1:${http}`),
    grpc: state().gateways.map(({ grpc }) => `127.0.0.1:${grpc}`),
    log,
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return exited;
    },
  };
}
