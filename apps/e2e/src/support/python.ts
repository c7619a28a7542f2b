/**
 * The Python side of the end-to-end tests: a virtual environment beside the repository's root (`.venv`, ignored by git),
 * made once from python/requirements.txt, and pytest runs inside it.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const SUITE = fileURLToPath(new URL('../../python/', import.meta.url));
const VENV = join(ROOT, '.venv');
const PYTHON = join(VENV, 'bin', 'python');

interface Finished {
  readonly code: number | null;
  readonly output: string;
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, cwd: SUITE });
    let output = '';
    child.stdout.on('data', (d: Buffer) => (output += d.toString()));
    child.stderr.on('data', (d: Buffer) => (output += d.toString()));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

async function must(command: string, args: readonly string[]): Promise<void> {
  const { code, output } = await run(command, args);
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`);
}

/** Makes the virtual environment unless the one there has these requirements. Needs python3 with its venv module. */
export async function preparePython(): Promise<void> {
  const requirements = join(SUITE, 'requirements.txt');
  const stamp = join(VENV, 'requirements.sha256');
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  await must('python3', ['-m', 'venv', '--clear', VENV]);
  await must(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements]);
  writeFileSync(stamp, wanted);
}

/** Runs one file of the suite against the server at these addresses. @param env what it needs beside them */
export function runPytest(
  file: string,
  addresses: { readonly http: string; readonly grpc: string },
  env: NodeJS.ProcessEnv = {},
): Promise<Finished> {
  return run(PYTHON, ['-m', 'pytest', '-q', '-x', '--no-header', '-p', 'no:cacheprovider', file], {
    ...process.env,
    ...env,
    PACELINE_HTTP: addresses.http,
    PACELINE_GRPC: addresses.grpc,
    PYTHONDONTWRITEBYTECODE: '1',
  });
}
