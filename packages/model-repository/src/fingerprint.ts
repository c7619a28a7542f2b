/**
 * Tells whether files have changed, by size, time and identity; contents are not read. The time of the last change of
 * the inode counts as well as that of the contents: a copy may set the latter to anything.
 */
import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A model's folder with more files than this is compared by the first ones only. */
const MAX_FILES = 10_000;

export interface Fingerprint {
  readonly text: string;
  /** When the newest file or folder changed, wall-clock milliseconds; 0 where nothing is there. */
  readonly changedMs: number;
}

/** @param paths files and folders; links are followed, folders entered; what is missing counts as missing */
export async function fingerprint(paths: readonly string[]): Promise<Fingerprint> {
  const hash = createHash('sha256');
  const queue = [...paths];
  let changedMs = 0;
  for (let i = 0; i < queue.length && i < MAX_FILES; i++) {
    const path = queue[i] as string;
    const info = await stat(path, { bigint: true }).catch(() => undefined);
    if (info === undefined) {
      hash.update(`${path}\0missing\n`);
      continue;
    }
    changedMs = Math.max(changedMs, Number(info.mtimeMs), Number(info.ctimeMs));
    if (info.isDirectory()) {
      hash.update(`${path}\0folder\n`);
      for (const name of (await readdir(path).catch(() => [])).sort()) queue.push(join(path, name));
    } else {
      hash.update(`${path}\0${info.size}\0${info.mtimeNs}\0${info.ino}\n`);
    }
  }
  return { text: hash.digest('hex'), changedMs };
}

/** {@link fingerprint} without its time. */
export async function fingerprintPaths(paths: readonly string[]): Promise<string> {
  return (await fingerprint(paths)).text;
}
