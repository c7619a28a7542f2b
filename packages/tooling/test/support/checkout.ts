/**
 * A checkout in a temporary folder with the real launcher and everything around it replaced: `pnpm` and `turbo` are
 * shell scripts that note what they were called with, the server notes the signals it gets and takes a moment to drain.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TOOLING = fileURLToPath(new URL('../..', import.meta.url));

const SERVER = `
const keepAlive = setInterval(() => {}, 1000);
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {
  signals += 1;
  console.log('signal', signal);
  if (signals === 1) setTimeout(() => { console.log('drained'); process.exit(Number(process.env.EXIT_CODE ?? 0)); }, 300);
});
console.log('serving', ...process.argv.slice(2));
if (process.argv[2] === '--report-node') console.log('node', ...process.execArgv);
if (process.argv[2] === '--fail') process.exit(3);
if (process.argv[2] === '--crash') process.kill(process.pid, 'SIGKILL');
`;

const PNPM = `#!/bin/sh
[ "$1" = --version ] && echo 12.21.0 && exit 0
echo "pnpm $*" >> "$CHECKOUT/calls"
[ -e "$CHECKOUT/install-fails" ] && exit 9
[ -e "$CHECKOUT/install-hangs" ] && echo installing >&2 && exec sleep 600
mkdir -p "$CHECKOUT/node_modules"
`;

const TURBO = `#!/bin/sh
echo "turbo $1 $2" >> "$CHECKOUT/calls"
mkdir -p "$CHECKOUT/apps/server/dist"
cp "$CHECKOUT/server.js" "$CHECKOUT/apps/server/dist/main.js"
mkdir -p "$CHECKOUT/infra/cluster/dist"
sed 's/.serving./"cluster"/' "$CHECKOUT/server.js" > "$CHECKOUT/infra/cluster/dist/main.js"
`;

const launcher = (script: Script): string => `packages/tooling/bin/${script}.mjs`;

/** The script of the root that is run: `npm start`, `npm run cluster`. */
export type Script = 'start' | 'cluster';

export interface LaunchOptions {
  /** Through npm instead of directly. */
  readonly npm?: boolean;
  readonly env?: NodeJS.ProcessEnv;
  readonly script?: Script;
}

export interface Launched {
  readonly child: ChildProcess;
  /** Standard output so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when standard output or error contains the text. @throws Error when everything ended before. */
  until(text: string): Promise<void>;
  /** Resolves when every process that holds our pipes has ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

export class Checkout {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'paceline start ')));
  readonly #bin = join(this.root, 'tools');

  constructor() {
    for (const part of ['bin', 'setup']) cpSync(join(TOOLING, part), join(this.root, 'packages/tooling', part), { recursive: true });
    this.put('packages/tooling/package.json', '{"type":"module"}');
    this.put(
      'package.json',
      JSON.stringify({
        name: 'checkout',
        type: 'module',
        scripts: { start: `exec node ${launcher('start')}`, cluster: `exec node ${launcher('cluster')}` },
      }),
    );
    this.put('pnpm-lock.yaml', 'lockfileVersion: 9\n');
    this.put('pnpm-workspace.yaml', 'packages: []\n');
    this.put('apps/server/package.json', '{"type":"module"}');
    this.put('apps/server/node.flags', '');
    this.put('apps/server/src/main.ts', '');
    this.put(
      'apps/server/scripts/link-example-models.mjs',
      `import { appendFileSync } from 'node:fs';\nappendFileSync('calls', 'link\\n');\n`,
    );
    this.put('infra/cluster/package.json', '{"type":"module"}');
    this.put('server.js', SERVER);
    this.put('tools/pnpm', PNPM);
    this.put('tools/turbo', TURBO);
    for (const tool of ['pnpm', 'turbo']) chmodSync(join(this.#bin, tool), 0o755);
  }

  put(path: string, text: string): void {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  append(path: string, text: string): void {
    appendFileSync(join(this.root, path), text);
  }

  remove(path: string): void {
    rmSync(join(this.root, path), { recursive: true });
  }

  /** What was called since the last time we asked. */
  calls(): string[] {
    const file = join(this.root, 'calls');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    rmSync(file);
    return lines;
  }

  /** Starts a process group of its own, as a terminal does. */
  launch(flags: readonly string[] = [], { npm = false, env = {}, script = 'start' }: LaunchOptions = {}): Launched {
    const [command, ...args] = npm ? ['npm', 'run', script, '--', ...flags] : [process.execPath, launcher(script), ...flags];
    const child = spawn(command, args, {
      cwd: this.root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: [this.#bin, dirname(process.execPath), process.env['PATH']].join(':'),
        HOME: process.env['HOME'],
        CHECKOUT: this.root,
        ...env,
      },
    });
    return follow(child);
  }

  /** Launches and waits until the server serves. */
  async serving(flags: readonly string[] = [], options: LaunchOptions = {}): Promise<Launched> {
    const launched = this.launch(flags, options);
    await launched.until('serving');
    return launched;
  }
}

function follow(child: ChildProcess): Launched {
  let stdout = '';
  let stderr = '';
  let check: () => void = () => undefined;
  child.stdout?.setEncoding('utf8').on('data', (text: string) => ((stdout += text), check()));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => ((stderr += text), check()));
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  const until = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      check = () => {
        if (stdout.includes(text) || stderr.includes(text)) resolve();
      };
      check();
      void ended.then(() => reject(new Error(`ended before '${text}':\n${stdout}\n${stderr}`)));
    });
  return { child, ended, until, stdout: () => stdout, stderr: () => stderr };
}
