/**
 * Docker for the tests of the images: the machine's own where one answers, else the daemon and the stand-ins of
 * without-registry.sh. Everything runs in the root of the repository.
 */
import { execFile, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const WITHOUT_REGISTRY = fileURLToPath(new URL('../without-registry.sh', import.meta.url));
const LARGEST_OUTPUT_BYTES = 64 * 1024 * 1024;
const execute = promisify(execFile);

export type Environment = Readonly<Record<string, string | undefined>>;

function answers(command: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore', timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
}

/** @returns the environment in which docker and compose run, or why there is none on this machine */
export async function findDocker(): Promise<Environment | string> {
  const own: Environment = process.env;
  if (answers('docker', 'info') && canPull()) return own;
  const started = await execute('bash', [WITHOUT_REGISTRY, 'up'], { maxBuffer: LARGEST_OUTPUT_BYTES }).catch(String);
  if (typeof started === 'string') return `no Docker with a registry answers, and none could be started: ${started}`;
  const { stdout } = started;
  const settings = [...stdout.matchAll(/(\w+)=(\S+)/g)].map((found): [string, string] => [found[1]!, found[2]!]);
  return { ...own, ...Object.fromEntries<string>(settings) };
}

function canPull(): boolean {
  return answers('docker', 'pull', '--quiet', 'node:24.21.0-bookworm-slim');
}

/** @returns what it wrote to standard output. @throws Error with all that it wrote when it fails */
export async function run(command: string, args: readonly string[], env: Environment): Promise<string> {
  try {
    const { stdout } = await execute(command, [...args], { cwd: ROOT, env, maxBuffer: LARGEST_OUTPUT_BYTES });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const said = `${stdout}${stderr}`.slice(-6000);
    throw new Error(`${command} ${args.join(' ')} failed:\n${said}`, { cause: error });
  }
}

/** One project of docker-compose.yml. */
export class Compose {
  readonly #command: readonly string[];

  constructor(
    private readonly env: Environment,
    project: string,
  ) {
    const base = answers('docker', 'compose', 'version') ? ['docker', 'compose'] : ['docker-compose'];
    this.#command = [...base, '--project-name', project];
  }

  compose(...args: readonly string[]): Promise<string> {
    const [command, ...first] = this.#command as [string, ...string[]];
    return run(command, [...first, ...args], this.env);
  }

  docker(...args: readonly string[]): Promise<string> {
    return run('docker', args, this.env);
  }

  /** Ids of the containers of a service. */
  async containers(service: string): Promise<string[]> {
    return (await this.compose('ps', '-q', service)).split('\n').filter((id) => id !== '');
  }
}

/** Resolves when `isSo` does so with true. @throws Error with what it said last when that takes longer than the limit */
export async function until(what: string, limitMs: number, isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs;
  let last: unknown;
  while (performance.now() < end) {
    last = undefined;
    if (await isSo().catch((error: unknown) => void (last = error))) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error(`${what}: not within ${limitMs} ms`, { cause: last });
}
