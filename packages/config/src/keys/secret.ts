/**
 * API keys and what is stored of them. A key is 256 random bits made here, never a word somebody chose: nobody can guess
 * it however fast the hash is, so one SHA-256 is enough, and an unknown key costs the server a microsecond. A slow hash
 * (scrypt) protects weak passwords; here it would protect nothing and let anybody burn the server's CPU with wrong keys.
 */
import { createHash, randomBytes } from 'node:crypto';

/** Marks a key as one of ours, so that scanners of repositories and logs find leaked ones. */
const PREFIX = 'pcl_';
const RANDOM_BYTES = 32;

/** A stored hash: `sha256:` and 64 lower-case hex digits. */
export const KEY_HASH = /^sha256:[0-9a-f]{64}$/;

/** @returns a fresh key: `pcl_` and 43 characters of base64url. It is in no log and no file. */
export function generateApiKey(): string {
  return PREFIX + randomBytes(RANDOM_BYTES).toString('base64url');
}

/** The form of `key` that a key file holds, see {@link KEY_HASH}. */
export function hashApiKey(key: string): string {
  return `sha256:${createHash('sha256').update(key, 'utf8').digest('hex')}`;
}
