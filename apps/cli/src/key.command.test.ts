import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { hashApiKey, parseKeyFile } from '@paceline/config';
import { CommanderError, type Command } from 'commander';
import { createProgram } from './program.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'paceline-keys-'));
  file = join(folder, 'keys.jsonl');
});
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Ends with an error instead of the process. */
function inProcess(command: Command, errors: string[]): Command {
  command.exitOverride().configureOutput({ writeErr: (text) => errors.push(text), outputError: (text) => errors.push(text) });
  for (const child of command.commands) inProcess(child, errors);
  return command;
}

/** @returns what was printed on standard output; or the messages of a failure */
async function run(...words: string[]): Promise<{ printed: string[]; errors: string }> {
  const printed: string[] = [];
  const errors: string[] = [];
  jest.spyOn(console, 'log').mockImplementation((text) => void printed.push(String(text)));
  jest.spyOn(console, 'error').mockImplementation(() => undefined);
  try {
    await inProcess(createProgram(), errors).parseAsync(['key', 'create', '--file', file, ...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
  }
  return { printed, errors: errors.join('') };
}

describe('paceline key create', () => {
  test('prints the key once and keeps only its hash, in a file for its owner', async () => {
    const { printed } = await run(
      '--id',
      'ci',
      '--scope',
      'infer,metadata',
      '--model',
      'digits*',
      '--model',
      'ocr',
      '--requests-per-second',
      '2.5',
    );
    const [key = ''] = printed;
    expect(printed).toHaveLength(1);
    expect(parseKeyFile(readFileSync(file, 'utf8'), 'f')).toEqual([
      { id: 'ci', hash: hashApiKey(key), scopes: ['infer', 'metadata'], models: ['digits*', 'ocr'], quota: { requestsPerSecond: 2.5 } },
    ]);
    expect(readFileSync(file, 'utf8')).not.toContain(key);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('appends to what is there, also behind a line without an end', async () => {
    writeFileSync(file, '# ours');
    await run('--id', 'a', '--scope', 'infer');
    await run('--id', 'b', '--scope', 'metrics', '--in-flight', '3', '--rows-per-second', '10');
    expect(readFileSync(file, 'utf8')).toMatch(/^# ours\n\{"id":"a".*\}\n\{"id":"b".*"quota":\{"rows_per_second":10,"in_flight":3\}\}\n$/);
  });

  test('an id that is taken, and a file with a fault, change nothing', async () => {
    await run('--id', 'a', '--scope', 'infer');
    const before = readFileSync(file, 'utf8');
    expect((await run('--id', 'a', '--scope', 'infer')).errors).toContain("has a key with the id 'a' already");
    expect(readFileSync(file, 'utf8')).toBe(before);
    writeFileSync(file, '{"id":1}\n');
    const { printed, errors } = await run('--id', 'b', '--scope', 'infer');
    expect([printed, errors]).toEqual([[], expect.stringContaining('keys.jsonl:1: id:')]);
    expect(readFileSync(file, 'utf8')).toBe('{"id":1}\n');
  });

  test.each([
    [['--id', 'a b', '--scope', 'infer'], 'Expected 1 to 64 letters'],
    [['--id', 'a', '--scope', 'infer,everything'], "Unknown scope 'everything'"],
    [['--id', 'a', '--scope', 'infer', '--model', '../x'], 'Expected a model name'],
    [['--id', 'a', '--scope', 'infer', '--in-flight', '1.5'], 'Expected a whole number above 0'],
    [['--id', 'a', '--scope', 'infer', '--rows-per-second', '-1'], 'Expected a number above 0'],
    [['--id', 'a'], "required option '--scope <scopes>' not specified"],
  ])('%j: %s', async (words, text) => {
    const { printed, errors } = await run(...words);
    expect([printed, errors]).toEqual([[], expect.stringContaining(text)]);
  });

  test('a file that cannot be written is named', async () => {
    const { printed, errors } = await run('--id', 'a', '--scope', 'infer', '--file', join(folder, 'none', 'keys'));
    expect([printed, errors]).toEqual([[], expect.stringContaining('cannot be changed: ENOENT')]);
  });
});
