/** Tells whether files have changed, by size, time and identity; contents are not read. */
import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A model's folder with more files than this is compared by the first ones only. */
const MAX_FILES = 10_000;

/** @param paths files and folders; links are followed, folders entered; what is missing counts as missing */
export async function fingerprintPaths(paths: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  const queue = [...paths];
  for (let i = 0; i < queue.length && i < MAX_FILES; i++) {
    const path = queue[i] as string;
    const info = await stat(path, { bigint: true }).catch(() => undefined);
    if (info === undefined) {
      hash.update(`${path}\0missing\n`);
    } else if (info.isDirectory()) {
      hash.update(`${path}\0folder\n`);
      for (const name of (await readdir(path)).sort()) queue.push(join(path, name));
    } else {
      hash.update(`${path}\0${info.size}\0${info.mtimeNs}\0${info.ino}\n`);
    }
  }
  return hash.digest('hex');
}
