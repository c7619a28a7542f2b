/**
 * The keys of one reading of the key file. Invariant: a key is found only by the SHA-256 of all its bytes; the plain text
 * is remembered for keys that were right, at most one for each, so that a caller costs one look into a map afterwards.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '@paceline/clock';
import { hashApiKey, type KeyEntry } from '@paceline/config';
import { KeyGrant } from './grant.js';
import { Quota } from './quota.js';

/** Longer strings are no keys; they are not hashed. */
const MAX_KEY_CHARACTERS = 512;

export class KeyRing {
  readonly #byHash = new Map<string, KeyGrant>();
  /** Keys that were right, as clients send them. V8 seeds its string hashes, and compares texts only when these agree. */
  readonly #verified = new Map<string, KeyGrant>();

  /** @param previous whose counts are carried over, where a key and its quota are the same */
  constructor(entries: readonly KeyEntry[], clock: Clock, previous?: KeyRing) {
    const quotas = new Map<string, Quota | undefined>();
    for (const { entry, quota } of previous?.grants() ?? []) quotas.set(entry.id, quota);
    for (const entry of entries) this.#byHash.set(entry.hash, new KeyGrant(entry, quotaOf(entry, quotas.get(entry.id)), clock));
  }

  get size(): number {
    return this.#byHash.size;
  }

  grants(): Iterable<KeyGrant> {
    return this.#byHash.values();
  }

  /** @returns undefined for a key that is not in the file */
  find(key: string): KeyGrant | undefined {
    const known = this.#verified.get(key);
    if (known !== undefined) return known;
    if (key.length > MAX_KEY_CHARACTERS) return undefined;
    const hash = hashApiKey(key);
    // The time of this look-up depends on digests, which tell nothing about a key that could be tried next.
    const grant = this.#byHash.get(hash);
    if (grant === undefined || !timingSafeEqual(Buffer.from(grant.entry.hash), Buffer.from(hash))) return undefined;
    this.#verified.set(key, grant);
    return grant;
  }
}

function quotaOf({ quota: limits }: KeyEntry, previous: Quota | undefined): Quota | undefined {
  const { requestsPerSecond, rowsPerSecond, inFlight } = limits;
  if (requestsPerSecond === undefined && rowsPerSecond === undefined && inFlight === undefined) return undefined;
  const before = previous?.limits;
  const same = before?.requestsPerSecond === requestsPerSecond && before?.rowsPerSecond === rowsPerSecond && before?.inFlight === inFlight;
  return same && previous !== undefined ? previous : new Quota(limits);
}
