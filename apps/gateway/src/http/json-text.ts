/**
 * Bytes → parsed JSON, under the limits that JSON.parse does not have: valid UTF-8, bounded nesting. Accepts what Triton's
 * parser accepts beyond JSON: a byte order mark, and the bare words NaN, Inf and Infinity that Python's json writes.
 */
import { isUtf8 } from 'node:buffer';
import { ServingError } from '@paceline/protocol';
import { parseJsonExact } from '@paceline/tensor';

export const MAX_JSON_DEPTH = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = [0x5b, 0x7b] as const;
const CLOSE = [0x5d, 0x7d] as const;

function refuse(detail: string, cause?: unknown): ServingError {
  return new ServingError('INVALID_ARGUMENT', `failed to parse the request JSON buffer: ${detail}`, { reason: 'json_malformed', cause });
}

/** Openers inside strings count too: below the limit the answer is no without looking closer. */
function mayBeDeep(body: Uint8Array): boolean {
  let openers = 0;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (byte === OPEN[0] || byte === OPEN[1]) openers += 1;
  }
  return openers > MAX_JSON_DEPTH;
}

function isTooDeep(body: Uint8Array): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (inString) {
      if (byte === BACKSLASH) i += 1;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === OPEN[0] || byte === OPEN[1]) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return true;
    } else if (byte === CLOSE[0] || byte === CLOSE[1]) depth -= 1;
  }
  return false;
}

/** Strings are matched first, so that words inside them stay as they are. */
const WORDS = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity|Inf)\b/g;

function quoteWords(text: string): string {
  return text.replace(WORDS, (match) => (match.startsWith('"') ? match : `"${match.replace(/Inf$/, 'Infinity')}"`));
}

/** @throws ServingError INVALID_ARGUMENT */
export function jsonTextOf(body: Buffer): string {
  if (!isUtf8(body)) throw refuse('Invalid encoding in string, expected UTF-8.');
  if (mayBeDeep(body) && isTooDeep(body)) throw refuse(`JSON nesting depth exceeds maximum allowed limit (${MAX_JSON_DEPTH})`);
  const text = body.toString('utf8');
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/**
 * @param exact integers beyond 2^53 become BigInts; slow
 * @throws ServingError INVALID_ARGUMENT
 */
export function parseJson(text: string, exact: boolean): unknown {
  const parse = exact ? parseJsonExact : (JSON.parse as (text: string) => unknown);
  try {
    return parse(text);
  } catch (error) {
    const detail = (error as SyntaxError).message;
    if (!/NaN|Inf/.test(text)) throw refuse(detail, error);
    try {
      return parse(quoteWords(text));
    } catch {
      throw refuse(detail, error);
    }
  }
}
