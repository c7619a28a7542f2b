/**
 * What a caller was found to be allowed. A grant is made by {@link AccessPolicy.authorize} for one action; who holds it has
 * passed key, scope and request quota, and asks it about each model before naming or touching one.
 */
import type { Clock } from '@paceline/clock';
import type { KeyEntry } from '@paceline/config';
import { ServingError, type ModelCatalog } from '@paceline/protocol';
import type { InferHandler } from '../infer/infer-service.js';
import { matchesGlob } from './glob.js';
import { MeteredInfer } from './metered-infer.js';
import type { Quota } from './quota.js';
import { type QuotaDecision } from './quota.js';

export interface Grant {
  /** For the audit: `key:<id>`, `restricted-api` or `anonymous`. */
  readonly who: string;
  /** The caller showed a secret that opens this action, so it need not be on this machine to change what is served. */
  readonly trusted: boolean;
  /** Whether `model` exists for this caller. */
  mayUse(model: string): boolean;
  /** @throws ServingError PERMISSION_DENIED, the same whether the model exists or not */
  requireModel(model: string): void;
  /** `base` behind the quotas of the caller. */
  meter(base: InferHandler, catalog: ModelCatalog): InferHandler;
}

const everything = (who: string, trusted: boolean): Grant => ({
  who,
  trusted,
  mayUse: () => true,
  requireModel: () => undefined,
  meter: (base) => base,
});

/** No key is asked for. */
export const ANONYMOUS = everything('anonymous', false);
/** The header of a restricted API was right. */
export const RESTRICTED_API = everything('restricted-api', true);

/** Names that are remembered per key; model names are few, but clients may send any. */
const MAX_REMEMBERED = 1024;

/** The holder of one key. */
export class KeyGrant implements Grant {
  readonly who: string;
  readonly trusted = true;
  readonly #scopes: ReadonlySet<string>;
  readonly #all: boolean;
  readonly #allowed = new Map<string, boolean>();

  /** @param quota carried over when the file is read again, so that no reload refills it; undefined = no limits */
  constructor(
    readonly entry: KeyEntry,
    readonly quota: Quota | undefined,
    private readonly clock: Clock,
  ) {
    this.who = `key:${entry.id}`;
    this.#scopes = new Set(entry.scopes);
    this.#all = entry.models.includes('*');
  }

  hasScope(scope: string): boolean {
    return this.#scopes.has(scope);
  }

  mayUse(model: string): boolean {
    if (this.#all) return true;
    let allowed = this.#allowed.get(model);
    if (allowed === undefined) {
      allowed = this.entry.models.some((glob) => matchesGlob(glob, model));
      if (this.#allowed.size >= MAX_REMEMBERED) this.#allowed.clear();
      this.#allowed.set(model, allowed);
    }
    return allowed;
  }

  requireModel(model: string): void {
    if (this.mayUse(model)) return;
    throw new ServingError('PERMISSION_DENIED', `API key '${this.entry.id}' does not open model '${model}'`, {
      reason: 'model_not_allowed',
    });
  }

  meter(base: InferHandler, catalog: ModelCatalog): InferHandler {
    const { quota, clock } = this;
    if (quota === undefined) return base;
    return new MeteredInfer(base, { quota, catalog, takeRows: (rows) => this.#check(quota.takeRows(rows, clock.nowUs())) });
  }

  /** Charges one request of any kind. @throws ServingError RESOURCE_EXHAUSTED with the time to wait */
  takeRequest(): void {
    if (this.quota !== undefined) this.#check(this.quota.takeRequest(this.clock.nowUs()));
  }

  #check(decision: QuotaDecision): void {
    if (decision.kind === 'take') return;
    const { reason, limit, retryAfterMs } = decision;
    throw new ServingError('RESOURCE_EXHAUSTED', `API key '${this.entry.id}' is over its quota of ${limit} ${WORDS[reason]}`, {
      reason: `quota_${reason}`,
      retryAfterMs,
    });
  }
}

const WORDS = { requests_per_second: 'requests a second', rows_per_second: 'rows a second', in_flight: 'requests in flight' } as const;
