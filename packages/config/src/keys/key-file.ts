/**
 * The file of API keys: one JSON object a line, blank lines and lines that begin with # are left out. Reading finds every
 * fault at once, each with its line; nothing of a file with a fault is used, so that a half-written one opens no door.
 */
import { z } from 'zod';
import { isKeyScope, KEY_SCOPES, type KeyScope } from './scopes.js';
import { KEY_HASH } from './secret.js';

/** What one key may use up. A member that is left out is without limit. */
export interface KeyQuota {
  /** Requests a second, any action; a burst of one second's worth is allowed. */
  readonly requestsPerSecond?: number | undefined;
  /** Rows of inference a second, likewise. */
  readonly rowsPerSecond?: number | undefined;
  /** Inference requests accepted and not yet answered. */
  readonly inFlight?: number | undefined;
}

export interface KeyEntry {
  /** Names the key in logs and messages; no secret. */
  readonly id: string;
  /** See {@link KEY_HASH}. */
  readonly hash: string;
  readonly scopes: readonly KeyScope[];
  /** Globs (`*` any characters, `?` one) over model names. */
  readonly models: readonly string[];
  readonly quota: KeyQuota;
}

/** What is wrong with a key file; the message has one fault a line, each with the file's name and the line. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError';
  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
  }
}

export const KEY_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** A model name with `*` and `?` anywhere. */
export const MODEL_GLOB = /^[A-Za-z0-9._*?-]{1,256}$/;

const positive = z.number({ error: 'expected a number above 0' }).positive('expected a number above 0').max(1e9);

const entrySchema = z.strictObject({
  id: z.string().regex(KEY_ID, 'expected 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit'),
  hash: z.string().regex(KEY_HASH, "expected 'sha256:' and 64 lower-case hex digits, as `paceline key create` writes"),
  scopes: z.array(z.string().refine(isKeyScope, `expected one of ${KEY_SCOPES.join(', ')}`)).min(1, 'expected at least one scope'),
  models: z
    .array(z.string().regex(MODEL_GLOB, 'expected a model name, in which * and ? stand for any characters and any one'))
    .min(1, 'expected at least one glob; * alone is every model')
    .default(['*']),
  quota: z
    .strictObject({
      requests_per_second: positive.optional(),
      rows_per_second: positive.optional(),
      in_flight: positive.int('expected a whole number').optional(),
    })
    .default({}),
});

/**
 * @param name how messages call the file
 * @throws KeyFileError
 */
export function parseKeyFile(text: string, name: string): readonly KeyEntry[] {
  const faults: string[] = [];
  const entries: KeyEntry[] = [];
  const idLines = new Map<string, number>();
  const hashLines = new Map<string, number>();
  text.split('\n').forEach((content, index) => {
    const trimmed = content.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const line = index + 1;
    const { entry, errors } = parseEntry(trimmed);
    for (const error of errors) faults.push(`${name}:${line}: ${error}`);
    if (entry === undefined) return;
    const idLine = idLines.get(entry.id);
    if (idLine !== undefined) faults.push(`${name}:${line}: id '${entry.id}' stands in line ${idLine} already`);
    const hashLine = hashLines.get(entry.hash);
    if (hashLine !== undefined) faults.push(`${name}:${line}: the key of '${entry.id}' stands in line ${hashLine} already`);
    idLines.set(entry.id, line);
    hashLines.set(entry.hash, line);
    entries.push(entry);
  });
  if (faults.length > 0) throw new KeyFileError(faults);
  return entries;
}

function parseEntry(text: string): { readonly entry?: KeyEntry; readonly errors: readonly string[] } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own text would repeat the line, which may hold a key by mistake.
    return { errors: ['expected one JSON object in this line'] };
  }
  const result = entrySchema.safeParse(value);
  if (!result.success)
    return {
      errors: result.error.issues.map((issue) => `${issue.path.map(String).join('.')}${issue.path.length > 0 ? ': ' : ''}${issue.message}`),
    };
  const { id, hash, scopes, models, quota } = result.data;
  return {
    entry: {
      id,
      hash,
      scopes: scopes,
      models,
      quota: { requestsPerSecond: quota.requests_per_second, rowsPerSecond: quota.rows_per_second, inFlight: quota.in_flight },
    },
    errors: [],
  };
}

/** The line of a key file that says `entry`, with its line end. */
export function keyFileLine({ id, hash, scopes, models, quota }: KeyEntry): string {
  const limits = { requests_per_second: quota.requestsPerSecond, rows_per_second: quota.rowsPerSecond, in_flight: quota.inFlight };
  const limited = Object.values(limits).some((limit) => limit !== undefined);
  return `${JSON.stringify({ id, hash, scopes, models, ...(limited && { quota: limits }) })}\n`;
}
