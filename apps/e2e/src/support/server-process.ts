/**
 * A Paceline server as its users run it: a process of its own with its whole tree, on free ports of the loopback
 * interface. Owns the process until `stop` has seen it exit.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../server/dist/main.js', import.meta.url));

/** Addresses as `host:port`, from the server's own "serving" log line. */
export interface ServerProcess {
  readonly child: ChildProcess;
  readonly http: string;
  readonly grpc: string;
  readonly metrics: string;
  /** Lines of standard error so far. */
  readonly log: readonly string[];
  /** Sends `signal` and resolves with the exit code (null = ended by a signal). */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface ServerExit {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function spawnServer(flags: readonly string[], env: NodeJS.ProcessEnv = {}, under: readonly string[] = []): ChildProcess {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} does not exist: build apps/server first`);
  const [command = '', ...args] = [...under, process.execPath, MAIN, ...flags];
  return spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
}

/**
 * Starts a server and waits until it serves.
 * @param env beside this process's own
 * @param under a command that becomes the server: what follows it is the server's command line
 * @throws Error with the server's output when it exits before
 */
export async function startServer(
  flags: readonly string[],
  env: NodeJS.ProcessEnv = {},
  under: readonly string[] = [],
): Promise<ServerProcess> {
  const child = spawnServer(['--http-port=0', '--grpc-port=0', '--metrics-port=0', ...flags], env, under);
  const log: string[] = [];
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  const addresses = new Promise<{ http: string; grpc: string; metrics: string }>((resolve, reject) => {
    createInterface({ input: child.stderr! }).on('line', (line) => {
      log.push(line);
      if (!line.includes('"serving"')) return;
      const event = JSON.parse(line) as { msg: string; http: string; grpc: string; metrics: string };
      if (event.msg === 'serving') resolve(event);
    });
    child.stdout!.on('data', (text: Buffer) => log.push(text.toString()));
    void exited.then((code) => reject(new Error(`server exited with ${code} before it served:\n${log.join('\n')}`)));
  });
  const { http, grpc, metrics } = await addresses;
  return {
    child,
    http,
    grpc,
    metrics,
    log,
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return exited;
    },
  };
}

/** Runs a server that is expected to end by itself and collects what it printed. */
export async function runServerToExit(flags: readonly string[]): Promise<ServerExit> {
  const child = spawnServer(flags);
  let stdout = '';
  let stderr = '';
  child.stdout!.on('data', (d: Buffer) => (stdout += d.toString()));
  child.stderr!.on('data', (d: Buffer) => (stderr += d.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', (c) => resolve(c)));
  return { code, stdout, stderr };
}
