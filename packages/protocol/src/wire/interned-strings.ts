/**
 * Names of models, versions and tensors come again with every request: a short ASCII string that was decoded lately is
 * found by its bytes instead of being made anew. A fixed table, so that strings which never repeat cost it nothing.
 */
const SLOTS = 1024;
const table: string[] = new Array<string>(SLOTS).fill('');

/** Strings up to this many bytes are looked up. */
export const INTERNED_BYTES = 64;

/** @returns the text of `bytes[from .. to)`, which must be UTF-8 and at most {@link INTERNED_BYTES} long. */
export function internedString(bytes: Buffer, from: number, to: number): string {
  let hash = to - from;
  let high = 0;
  for (let i = from; i < to; i++) {
    const byte = bytes[i]!;
    hash = (Math.imul(hash, 31) + byte) | 0;
    high |= byte;
  }
  if (high > 127) return bytes.toString('utf8', from, to);
  const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
  const known = table[slot]!;
  if (known.length === to - from && isText(known, bytes, from)) return known;
  const text = bytes.toString('latin1', from, to);
  table[slot] = text;
  return text;
}

function isText(text: string, bytes: Buffer, from: number): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== bytes[from + i]) return false;
  }
  return true;
}
