/**
 * The one place that decides who may do what, for HTTP, gRPC and metrics alike. Without a key file and restricted APIs the
 * data plane is open; with a key file everything but liveness needs a key with the scope of the action.
 */
import type { RestrictedApis } from '@paceline/config';
import { ServingError } from '@paceline/protocol';
import { objectionToManagement, type ManagementCaller } from '../control/management-access.js';
import type { Action } from './actions.js';
import { ANONYMOUS, RESTRICTED_API, type Grant, type KeyGrant } from './grant.js';
import type { KeyRing } from './key-ring.js';
import { Restrictions, type Door, type HeaderOf } from './restricted-apis.js';

export interface AccessOptions {
  /** The keys now in force; undefined = no key file, nobody needs one. */
  readonly keys: (() => KeyRing) | undefined;
  readonly restrictedHttp: RestrictedApis;
  readonly restrictedGrpc: RestrictedApis;
  /** Origins of web pages that may call the server; `*` = any. */
  readonly corsOrigins: readonly string[];
}

const AUTHORIZATION = 'authorization';
const API_KEY = 'x-api-key';
const BEARER = /^bearer +(\S+)$/i;

export class AccessPolicy {
  readonly #keys: (() => KeyRing) | undefined;
  readonly #restrictions: Readonly<Record<Door, Restrictions>>;
  readonly corsOrigins: readonly string[];
  /** Lower-case names of the HTTP headers that decide; empty where everything is open. */
  readonly httpHeaders: ReadonlySet<string>;

  constructor(options: AccessOptions) {
    this.#keys = options.keys;
    this.corsOrigins = options.corsOrigins;
    this.#restrictions = { http: new Restrictions('http', options.restrictedHttp), grpc: new Restrictions('grpc', options.restrictedGrpc) };
    this.httpHeaders = new Set([...(this.#keys ? [AUTHORIZATION, API_KEY] : []), ...this.#restrictions.http.headerNames]);
  }

  /** Whether nothing has to be asked of callers at `door`. */
  isOpen(door: Door): boolean {
    return this.#keys === undefined && this.#restrictions[door].size === 0;
  }

  /**
   * Admits one request, before anything of it but its head is read.
   * @param action undefined = a route or method that is not in the table of actions
   * @throws ServingError UNAUTHENTICATED, PERMISSION_DENIED or RESOURCE_EXHAUSTED
   */
  authorize(door: Door, action: Action | undefined, headerOf: HeaderOf): Grant {
    if (this.isOpen(door)) return ANONYMOUS;
    if (action === undefined) {
      if (this.#keys !== undefined) this.#authenticate(this.#keys(), headerOf);
      throw new ServingError('PERMISSION_DENIED', 'no scope opens this', { reason: 'no_scope' });
    }
    const opened = this.#restrictions[door].check(action.scope, headerOf);
    if (this.#keys === undefined || action.alwaysOpen) return opened ? RESTRICTED_API : ANONYMOUS;
    const grant = this.#authenticate(this.#keys(), headerOf);
    if (!grant.hasScope(action.scope))
      throw new ServingError('PERMISSION_DENIED', `API key '${grant.entry.id}' lacks the scope '${action.scope}'`, {
        reason: 'scope_missing',
      });
    grant.takeRequest();
    return grant;
  }

  /**
   * For what changes the server: a secret that opens the action, or a direct caller on this machine. A web page needs to be
   * among the allowed origins in any case.
   * @throws ServingError PERMISSION_DENIED with what stands against it
   */
  requireManagement(grant: Grant, caller: ManagementCaller): void {
    const objection = grant.trusted ? this.#foreignPage(caller) : objectionToManagement(caller);
    if (objection === undefined) return;
    const rule = grant.trusted
      ? 'model control is not open to web pages of other origins'
      : `model control is open only to clients on the server's own machine that call it directly`;
    throw new ServingError('PERMISSION_DENIED', `${rule}: ${objection}`, {
      reason: grant.trusted ? 'management_foreign_origin' : 'management_not_local',
    });
  }

  #foreignPage({ origin }: ManagementCaller): string | undefined {
    if (origin === undefined || this.corsOrigins.includes('*') || this.corsOrigins.includes(origin)) return undefined;
    return `this request carries the header 'origin'`;
  }

  #authenticate(ring: KeyRing, headerOf: HeaderOf): KeyGrant {
    const bearer = BEARER.exec(headerOf(AUTHORIZATION) ?? '')?.[1];
    const plain = headerOf(API_KEY);
    const key = bearer ?? plain;
    if (key === undefined)
      throw unauthenticated("this server needs an API key: send it as 'Authorization: Bearer <key>' or 'x-api-key: <key>'", 'key_missing');
    if (bearer !== undefined && plain !== undefined && bearer !== plain)
      throw unauthenticated("'Authorization' and 'x-api-key' carry two different keys", 'key_ambiguous');
    const grant = ring.find(key);
    if (grant === undefined) throw unauthenticated('the API key is not known to this server', 'key_unknown');
    return grant;
  }
}

/** Nothing is asked of anybody; management by the local rule. */
export function openAccess(): AccessPolicy {
  return new AccessPolicy({ keys: undefined, restrictedHttp: [], restrictedGrpc: [], corsOrigins: [] });
}

const unauthenticated = (message: string, reason: string): ServingError => new ServingError('UNAUTHENTICATED', message, { reason });
