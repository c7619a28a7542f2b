import { readFileSync } from 'node:fs';

/** The version of this server, from its package manifest. */
export function manifestVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  return manifest.version;
}
