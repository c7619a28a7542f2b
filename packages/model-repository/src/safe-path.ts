/**
 * The one place where a name becomes a path. Names come from configuration text, model files and clients; a name that
 * could leave the folder it belongs to is refused before the file system is asked, and with the same message whether
 * its target exists or not.
 */
import { realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { ServingError } from '@paceline/protocol';

/** Longest name, in bytes of UTF-8: what common file systems allow. */
const MAX_NAME_BYTES = 255;

function refuse(what: string, name: string, why: string): never {
  throw new ServingError('INVALID_ARGUMENT', `${what} ${JSON.stringify(name.slice(0, MAX_NAME_BYTES))} ${why}`, { reason: 'unsafe_name' });
}

/**
 * `name` itself, when it is a single path segment.
 * @param what how messages call it, e.g. "model name"
 * @throws ServingError INVALID_ARGUMENT
 */
export function safeSegment(name: string, what: string): string {
  if (name === '') refuse(what, name, 'is empty');
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) refuse(what, name, `is longer than ${MAX_NAME_BYTES} bytes`);
  if (name === '.' || name === '..') refuse(what, name, 'is not a name');
  if (/[/\\]/.test(name)) refuse(what, name, 'must not hold a path separator');
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(name)) refuse(what, name, 'must not hold control characters');
  return name;
}

/**
 * `folder/name`, where `name` may have several segments divided by `/`.
 * @throws ServingError INVALID_ARGUMENT for absolute paths, `..`, backslashes, NUL and other control characters
 */
export function safeJoin(folder: string, name: string, what: string): string {
  if (name === '') refuse(what, name, 'is empty');
  if (isAbsolute(name) || /^[A-Za-z]:/.test(name)) refuse(what, name, 'must be relative to the folder of the model');
  const segments = name.split('/');
  // A leading `./` is harmless and written by some exporters.
  const kept = segments[0] === '.' ? segments.slice(1) : segments;
  for (const segment of kept) safeSegment(segment, what);
  return join(folder, ...kept);
}

/**
 * The same for a name from configuration text or a model file, following symbolic links.
 * @returns the real path; undefined where nothing is there
 * @throws ServingError INVALID_ARGUMENT also when a link leads out of `folder`
 */
export async function safeExistingFile(folder: string, name: string, what: string): Promise<string | undefined> {
  const path = safeJoin(folder, name, what);
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return undefined;
  const inside = relative(await realpath(folder), real);
  if (inside.startsWith(`..${sep}`) || inside === '..' || isAbsolute(inside)) refuse(what, name, 'leads out of the folder of the model');
  return real;
}
