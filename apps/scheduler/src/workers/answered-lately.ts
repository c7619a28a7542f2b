/**
 * Which requests each worker has answered lately, for the case that it dies before its replies have left it: their lanes
 * are done with them, and their gateways would wait in vain. Keeps numbers, never inputs, in one ring a worker; what is
 * older, or further back, than it keeps is taken to have arrived. Invariant: noting costs a request a few stores.
 */
import type { Clock } from '@paceline/clock';
import type { RequestAttempt } from '@paceline/protocol';
import type { BatchMember } from '@paceline/worker-rpc';

/** Longer than it takes to notice that a worker is silent. */
const LATELY_US = 5_000_000;
/** Of each worker. A power of two: positions are masked. */
const KEPT_REQUESTS = 16_384;

export class AnsweredLately {
  readonly #rings = new Map<string, Ring>();

  constructor(private readonly clock: Clock) {}

  /** The worker has ended a batch with those members well. */
  note(worker: string, members: readonly BatchMember[]): void {
    let ring = this.#rings.get(worker);
    if (!ring) this.#rings.set(worker, (ring = new Ring()));
    ring.add(members, this.clock.nowUs());
  }

  /** Forgets the worker. @returns what it has answered lately, oldest first, by gateway */
  take(worker: string): ReadonlyMap<string, readonly RequestAttempt[]> {
    const ring = this.#rings.get(worker);
    this.#rings.delete(worker);
    return ring?.since(this.clock.nowUs() - LATELY_US) ?? new Map<string, RequestAttempt[]>();
  }

  clear(): void {
    this.#rings.clear();
  }
}

class Ring {
  readonly #numbers = new Float64Array(KEPT_REQUESTS);
  readonly #attempts = new Uint32Array(KEPT_REQUESTS);
  readonly #timesUs = new Float64Array(KEPT_REQUESTS);
  readonly #gateways = new Array<string>(KEPT_REQUESTS).fill('');
  /** Of all that were ever added. */
  #count = 0;
  #lastGateway = '';

  add(members: readonly BatchMember[], nowUs: number): void {
    for (const { ref, attempt = 1 } of members) {
      const at = this.#count++ & (KEPT_REQUESTS - 1);
      this.#numbers[at] = ref.number;
      this.#attempts[at] = attempt;
      this.#timesUs[at] = nowUs;
      // Each request brought its own copy of the name: one of them is enough for a run of equal ones.
      if (ref.gateway !== this.#lastGateway) this.#lastGateway = ref.gateway;
      this.#gateways[at] = this.#lastGateway;
    }
  }

  since(fromUs: number): Map<string, RequestAttempt[]> {
    const byGateway = new Map<string, RequestAttempt[]>();
    for (let i = Math.max(0, this.#count - KEPT_REQUESTS); i < this.#count; i++) {
      const at = i & (KEPT_REQUESTS - 1);
      if (this.#timesUs[at]! < fromUs) continue;
      const gateway = this.#gateways[at]!;
      let requests = byGateway.get(gateway);
      if (!requests) byGateway.set(gateway, (requests = []));
      requests.push({ number: this.#numbers[at]!, attempt: this.#attempts[at]! });
    }
    return byGateway;
  }
}
