/**
 * A real `redis-server` for tests, on a free port of 127.0.0.1, without persistence unless asked. It dies with the
 * process that started it, however that one ends, and its folder goes with {@link RedisServer.stop}.
 */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface StartRedisOptions {
  /** More arguments of redis-server, e.g. `['--maxmemory', '8mb']`; they win over the defaults. */
  readonly args?: readonly string[];
  /** Working folder, kept by `stop`; left out = a temporary one. */
  readonly dir?: string;
  /** Left out = a free port. */
  readonly port?: number;
  readonly password?: string;
  /** Speaks TLS only, also with its like. */
  readonly tls?: RedisTlsFiles;
}

/** Paths of PEM files. */
export interface RedisTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

/** Settings of a server or sentinel that speaks TLS only, or plain text where there are no files. */
export function portSettings(port: number, tls: RedisTlsFiles | undefined): readonly (readonly [name: string, value: string])[] {
  if (!tls) return [['port', `${port}`]];
  return [
    ['port', '0'],
    ['tls-port', `${port}`],
    ['tls-cert-file', tls.certFile],
    ['tls-key-file', tls.keyFile],
    ['tls-ca-cert-file', tls.caFile],
    ['tls-auth-clients', 'no'],
    ['tls-replication', 'yes'],
  ];
}

export interface RedisServer {
  /** `redis://` or `rediss://`, with the password. Stays over restarts. */
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now, or that ran last. */
  readonly pid: number;
  /** Runs one command through redis-cli. @returns its reply as text; @throws where Redis answers an error */
  command(...args: string[]): Promise<string>;
  /** Ends it and removes its folder. Idempotent. */
  stop(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again on the same port, on what lies in its folder. No-op while it runs. */
  start(): Promise<void>;
  /** Ends it, if it runs, and starts it again. @param keepData it saves its data before, and reads them after */
  restart(options: { readonly keepData: boolean }): Promise<void>;
  /** SIGSTOP: connections stay, nothing is answered. */
  pause(): void;
  resume(): void;
}

const START_LIMIT_MS = 15_000;
const PORT_ATTEMPTS = 5;
const run = promisify(execFile);

/** @throws where there is no redis-server on PATH, or it does not start */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const server = new ServerProcess(options, options.port ?? (await freePort()));
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Somebody else may have taken the port in between.
      const taken = options.port === undefined && /Address already in use/.test(String(error));
      if (!taken || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

/** A port of 127.0.0.1 that nobody listened on a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

class ServerProcess implements RedisServer {
  readonly #dir: string;
  #child: ChildProcess | undefined;
  #pid = 0;

  constructor(
    private readonly options: StartRedisOptions,
    readonly port: number,
  ) {
    this.#dir = options.dir ?? mkdtempSync(join(tmpdir(), 'paceline-redis-'));
  }

  get url(): string {
    const password = this.options.password === undefined ? '' : `:${encodeURIComponent(this.options.password)}@`;
    return `${this.options.tls ? 'rediss' : 'redis'}://${password}127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#pid;
  }

  async start(): Promise<void> {
    if (this.#child) return;
    const { tls, password, args = [] } = this.options;
    const ports = portSettings(this.port, tls).flatMap(([name, value]) => [`--${name}`, value]);
    const common = ['--bind', '127.0.0.1', '--dir', this.#dir, '--save', '', '--daemonize', 'no'];
    const secret = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
    this.#child = await spawnServer([...ports, ...common, ...secret, ...args], /Ready to accept connections/);
    this.#pid = this.#child.pid ?? 0;
  }

  async command(...args: string[]): Promise<string> {
    const { tls, password } = this.options;
    const connection = ['-h', '127.0.0.1', '-p', `${this.port}`, '-e', '--no-auth-warning'];
    if (tls) connection.push('--tls', '--cacert', tls.caFile);
    if (password !== undefined) connection.push('-a', password);
    const { stdout } = await run('redis-cli', [...connection, ...args]);
    return stdout.replace(/\n$/, '');
  }

  async stop(): Promise<void> {
    await this.kill();
    if (this.options.dir === undefined) rmSync(this.#dir, { recursive: true, force: true });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child) await endProcess(child);
  }

  async restart({ keepData }: { readonly keepData: boolean }): Promise<void> {
    if (this.#child && keepData) await this.command('SAVE');
    await this.kill();
    if (!keepData) {
      for (const name of readdirSync(this.#dir)) {
        if (name === 'dump.rdb' || name.startsWith('appendonly')) rmSync(join(this.#dir, name), { recursive: true });
      }
    }
    await this.start();
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }
}

/** Starts redis-server and waits for a line of its log. @throws with the log where it ends before */
export async function spawnServer(args: readonly string[], readyLine: RegExp): Promise<ChildProcess> {
  // setpriv becomes redis-server, with the same pid, and has the kernel end it together with its parent.
  const [command, first] = hasSetpriv() ? ['setpriv', ['--pdeathsig', 'KILL', 'redis-server']] : ['redis-server', []];
  const child = spawn(command, [...first, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error('redis-server did not get ready')), START_LIMIT_MS);
      const read = (text: string): void => {
        log += text;
        if (readyLine.test(log)) resolve();
      };
      child.stdout.setEncoding('utf8').on('data', read);
      child.stderr.setEncoding('utf8').on('data', read);
      child.once('error', reject);
      child.once('exit', (code, signal) => reject(new Error(`redis-server ended with ${signal ?? code}`)));
    });
  } catch (error) {
    await endProcess(child);
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${reason}; tests need Redis 7 or newer (Debian, Ubuntu: apt-get install redis-server)\n${log}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
  // The log is read on, so that the pipe never fills, and thrown away.
  for (const stream of [child.stdout, child.stderr]) stream.removeAllListeners('data').resume();
  return child;
}

/** SIGKILL, and waits for the end. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

let setpriv: boolean | undefined;

function hasSetpriv(): boolean {
  if (setpriv !== undefined) return setpriv;
  try {
    execFileSync('setpriv', ['--pdeathsig', 'KILL', 'true'], { stdio: 'ignore' });
    return (setpriv = true);
  } catch {
    return (setpriv = false);
  }
}
