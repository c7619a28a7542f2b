/**
 * Which requests were handed over before, so that a gateway that sends again after a doubt does not have them run twice.
 * Remembers the last 16,384 numbers of each of the last 64 gateways in constant memory; numbers of one gateway grow.
 */
import type { RequestRef } from '@paceline/protocol';

const WINDOW = 1 << 14;
const MAX_GATEWAYS = 64;

export class SeenRequests {
  readonly #windows = new Map<string, Float64Array>();
  #lastGateway = '';
  #last: Float64Array | undefined;

  /** True the first time a ref is shown; then false for as long as it is remembered. */
  add(ref: RequestRef): boolean {
    const window = this.#windowOf(ref.gateway);
    const slot = ref.number % WINDOW;
    if (window[slot] === ref.number) return false;
    window[slot] = ref.number;
    return true;
  }

  #windowOf(gateway: string): Float64Array {
    if (this.#last && this.#lastGateway === gateway) return this.#last;
    let window = this.#windows.get(gateway);
    if (!window) {
      if (this.#windows.size >= MAX_GATEWAYS) {
        const oldest = this.#windows.keys().next();
        if (!oldest.done) this.#windows.delete(oldest.value);
      }
      window = new Float64Array(WINDOW).fill(-1);
      this.#windows.set(gateway, window);
    }
    this.#lastGateway = gateway;
    this.#last = window;
    return window;
  }
}
