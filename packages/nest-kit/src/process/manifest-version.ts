/** The version of a program, from its package manifest. */
import { readFileSync } from 'node:fs';

/** @param manifest where its package.json is */
export function manifestVersion(manifest: URL): string {
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}
