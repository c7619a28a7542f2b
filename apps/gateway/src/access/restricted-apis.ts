/**
 * Triton's restricted APIs: groups of actions that need a header with a fixed value, one for each group, stated at start.
 * They know no models and no callers; API keys do. Values are compared in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { KeyScope, RestrictedApis } from '@paceline/config';
import { ServingError } from '@paceline/protocol';

export type Door = 'http' | 'grpc';
/** @returns the value of a header by its lower-case name; undefined = absent */
export type HeaderOf = (name: string) => string | undefined;

/** What Triton puts before the header's name in gRPC metadata. */
const GRPC_PREFIX = 'triton-grpc-protocol-';

interface Restriction {
  /** As written, for messages. */
  readonly header: string;
  readonly digest: Buffer;
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text, 'utf8').digest();

export class Restrictions {
  readonly #byScope = new Map<KeyScope, Restriction>();

  constructor(
    private readonly door: Door,
    groups: RestrictedApis,
  ) {
    const prefix = door === 'grpc' ? GRPC_PREFIX : '';
    for (const { apis, key, value } of groups)
      for (const api of apis) this.#byScope.set(api, { header: prefix + key, digest: digestOf(value) });
  }

  get size(): number {
    return this.#byScope.size;
  }

  /** Lower-case names of the headers that matter. */
  get headerNames(): readonly string[] {
    return [...new Set([...this.#byScope.values()].map(({ header }) => header.toLowerCase()))];
  }

  /**
   * @returns whether the scope is restricted and the header was right; false = not restricted
   * @throws ServingError PERMISSION_DENIED with Triton's text
   */
  check(scope: KeyScope, headerOf: HeaderOf): boolean {
    const restriction = this.#byScope.get(scope);
    if (restriction === undefined) return false;
    const value = headerOf(restriction.header.toLowerCase());
    if (value !== undefined && timingSafeEqual(digestOf(value), restriction.digest)) return true;
    const what = this.door === 'http' ? 'API' : 'protocol';
    throw new ServingError('PERMISSION_DENIED', `This ${what} is restricted, expecting header '${restriction.header}'`, {
      reason: 'restricted_api',
    });
  }
}
