/**
 * `paceline key create`: makes an API key, appends its hash to the key file, and prints the key once. Invariant: the key is
 * printed only after its line is in the file, and stands nowhere but in that output.
 */
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import {
  generateApiKey,
  hashApiKey,
  isKeyScope,
  KEY_ID,
  KEY_SCOPES,
  keyFileLine,
  KeyFileError,
  MODEL_GLOB,
  parseKeyFile,
  type KeyScope,
} from '@paceline/config';
import { Command, InvalidArgumentError } from 'commander';

interface CreateOptions {
  readonly id: string;
  readonly file: string;
  readonly scope: readonly KeyScope[];
  readonly model?: readonly string[];
  readonly requestsPerSecond?: number;
  readonly rowsPerSecond?: number;
  readonly inFlight?: number;
}

/** Only whoever runs the server needs to read it. */
const FILE_MODE = 0o600;

export function keyCommand(): Command {
  const key = new Command('key').description('manage the API keys of a server');
  key
    .command('create')
    .description('make an API key, append its hash to the key file, and print the key; a running server takes it within a second')
    .requiredOption('--id <id>', 'name of the key in logs and messages', toId)
    .requiredOption('--scope <scopes>', `what it opens, separated by commas: ${KEY_SCOPES.join(', ')}`, toScopes)
    .option('--model <glob>', 'model it opens, * and ? allowed; may be repeated (default: every model)', toGlobs)
    .option('--requests-per-second <count>', 'requests a second', toPositive)
    .option('--rows-per-second <count>', 'rows of inference a second', toPositive)
    .option('--in-flight <count>', 'inference requests at the same time', toCount)
    .option('--file <path>', 'the key file, as in serve --api-key-file', process.env['PACELINE_API_KEY_FILE'] ?? 'api-keys.jsonl')
    .action((options: CreateOptions, command: Command) => create(options, command));
  return key;
}

function create(options: CreateOptions, command: Command): void {
  const { id, file, scope: scopes, model: models = ['*'], requestsPerSecond, rowsPerSecond, inFlight } = options;
  const key = generateApiKey();
  try {
    const text = textOf(file);
    if (parseKeyFile(text, file).some((entry) => entry.id === id)) command.error(`paceline: ${file} has a key with the id '${id}' already`);
    const line = keyFileLine({ id, hash: hashApiKey(key), scopes, models, quota: { requestsPerSecond, rowsPerSecond, inFlight } });
    append(file, text === '' || text.endsWith('\n') ? line : `\n${line}`);
  } catch (error) {
    if (error instanceof KeyFileError) command.error(error.message);
    // The file system's own errors say what it was asked for.
    const { syscall, message } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    command.error(`paceline: ${file} cannot be changed: ${message}`);
  }
  console.error(`Key '${id}' is in ${file}. It is shown only this once:`);
  console.log(key);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/** One write at the end of the file: a server that reads meanwhile sees the line whole or not at all. */
function append(file: string, text: string): void {
  const handle = openSync(file, 'a', FILE_MODE);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function toId(text: string): string {
  if (KEY_ID.test(text)) return text;
  throw new InvalidArgumentError('Expected 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit.');
}

function toScopes(text: string, before: readonly KeyScope[] = []): readonly KeyScope[] {
  const names = text.split(',');
  const unknown = names.find((name) => !isKeyScope(name));
  if (unknown !== undefined) throw new InvalidArgumentError(`Unknown scope '${unknown}'; expected some of ${KEY_SCOPES.join(', ')}.`);
  return [...new Set([...before, ...names.filter(isKeyScope)])];
}

function toGlobs(text: string, before: readonly string[] = []): readonly string[] {
  if (!MODEL_GLOB.test(text))
    throw new InvalidArgumentError('Expected a model name, in which * and ? stand for any characters and any one.');
  return [...before, text];
}

function toPositive(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && value <= 1e9) return value;
  throw new InvalidArgumentError('Expected a number above 0.');
}

function toCount(text: string): number {
  const value = toPositive(text);
  if (Number.isInteger(value)) return value;
  throw new InvalidArgumentError('Expected a whole number above 0.');
}
