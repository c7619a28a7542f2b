/**
 * What one key may still use up: two token buckets that hold one second's worth, and a count of what is in flight. Pure:
 * the caller says what time it is. Invariant: in flight = taken minus given back, and never above its limit.
 */
import type { KeyQuota } from '@paceline/config';

export type QuotaDecision =
  | { readonly kind: 'take' }
  | { readonly kind: 'refuse'; readonly reason: QuotaReason; readonly limit: number; readonly retryAfterMs: number };

export type QuotaReason = 'requests_per_second' | 'rows_per_second' | 'in_flight';

const TAKE: QuotaDecision = { kind: 'take' };
/** When to come back to a key that is busy: nothing says how long its own requests take. */
const BUSY_RETRY_MS = 1000;

/** Tokens that grow with time up to one second's worth (at least one). */
class Bucket {
  #tokens: number;
  #atUs: number | undefined;
  readonly capacity: number;

  constructor(readonly perSecond: number) {
    this.#tokens = this.capacity = Math.max(1, perSecond);
  }

  /**
   * Takes `count` tokens. What is larger than the bucket needs a full one and leaves a debt, else it could never pass.
   * @returns milliseconds until it would fit; 0 = taken
   */
  take(count: number, nowUs: number): number {
    const grown = ((nowUs - (this.#atUs ?? nowUs)) / 1e6) * this.perSecond;
    this.#tokens = Math.min(this.capacity, this.#tokens + grown);
    this.#atUs = nowUs;
    const missing = Math.min(count, this.capacity) - this.#tokens;
    // Sums of fractions: a billionth of a token is no token.
    if (missing > 1e-9) return Math.max(1, Math.ceil((missing / this.perSecond) * 1000));
    this.#tokens -= count;
    return 0;
  }

  giveBack(count: number): void {
    this.#tokens = Math.min(this.capacity, this.#tokens + count);
  }
}

export class Quota {
  readonly #requests: Bucket | undefined;
  readonly #rows: Bucket | undefined;
  readonly #maxInFlight: number;
  #inFlight = 0;

  constructor(readonly limits: KeyQuota) {
    this.#requests = limits.requestsPerSecond === undefined ? undefined : new Bucket(limits.requestsPerSecond);
    this.#rows = limits.rowsPerSecond === undefined ? undefined : new Bucket(limits.rowsPerSecond);
    this.#maxInFlight = limits.inFlight ?? Infinity;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Charges a request of any kind, before anything of it is read. */
  takeRequest(nowUs: number): QuotaDecision {
    return judge('requests_per_second', this.#requests, 1, nowUs);
  }

  /** Charges an inference and counts it as in flight until {@link giveBack}. */
  takeRows(rows: number, nowUs: number): QuotaDecision {
    if (this.#inFlight >= this.#maxInFlight)
      return { kind: 'refuse', reason: 'in_flight', limit: this.#maxInFlight, retryAfterMs: BUSY_RETRY_MS };
    const decision = judge('rows_per_second', this.#rows, rows, nowUs);
    if (decision.kind === 'take') this.#inFlight += 1;
    return decision;
  }

  /** An inference has ended. @param unusedRows rows that were charged and never ran */
  giveBack(unusedRows: number): void {
    this.#inFlight -= 1;
    if (unusedRows > 0) this.#rows?.giveBack(unusedRows);
  }
}

function judge(reason: QuotaReason, bucket: Bucket | undefined, count: number, nowUs: number): QuotaDecision {
  const waitMs = bucket?.take(count, nowUs) ?? 0;
  return waitMs === 0 ? TAKE : { kind: 'refuse', reason, limit: bucket?.perSecond ?? 0, retryAfterMs: waitMs };
}
