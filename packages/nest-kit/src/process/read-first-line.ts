/** Reads secrets from the files that flags name. A message says which flag and file, never what stands in it. */
import { readFileSync } from 'node:fs';
import { StartError } from './start-error.js';

/** @throws StartError where there is no such file, or nothing in its first line */
export function readFirstLine(flag: string, file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(`${flag}=${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
  const line = (text.split('\n', 1)[0] ?? '').trim();
  if (line === '') throw new StartError(`${flag}=${file}: expected a secret in the first line, found an empty one`);
  return line;
}
