/**
 * Which requests were handed over before, so that a gateway that sends again after a doubt does not have them run twice;
 * a higher attempt is another matter: the gateway knows that the one before was lost.
 * Remembers the last 16,384 numbers of each of the last 64 gateways in constant memory; numbers of one gateway grow.
 */
import type { RequestRef } from '@paceline/protocol';

const WINDOW = 1 << 14;
const MAX_GATEWAYS = 64;

interface Window {
  readonly numbers: Float64Array;
  readonly attempts: Uint8Array;
}

export class SeenRequests {
  readonly #windows = new Map<string, Window>();
  #lastGateway = '';
  #last: Window | undefined;

  /**
   * True the first time a ref is shown with that attempt or a higher one; then false for as long as it is remembered.
   * @param attempt from 1
   */
  add(ref: RequestRef, attempt = 1): boolean {
    const { numbers, attempts } = this.#windowOf(ref.gateway);
    const slot = ref.number % WINDOW;
    if (numbers[slot] === ref.number && attempt <= (attempts[slot] as number)) return false;
    numbers[slot] = ref.number;
    attempts[slot] = attempt;
    return true;
  }

  /** Whether that ref was added, with whatever attempt, and is remembered. */
  has({ gateway, number }: RequestRef): boolean {
    return this.#windows.get(gateway)?.numbers[number % WINDOW] === number;
  }

  #windowOf(gateway: string): Window {
    if (this.#last && this.#lastGateway === gateway) return this.#last;
    let window = this.#windows.get(gateway);
    if (!window) {
      if (this.#windows.size >= MAX_GATEWAYS) {
        const oldest = this.#windows.keys().next();
        if (!oldest.done) this.#windows.delete(oldest.value);
      }
      window = { numbers: new Float64Array(WINDOW).fill(-1), attempts: new Uint8Array(WINDOW) };
      this.#windows.set(gateway, window);
    }
    this.#lastGateway = gateway;
    this.#last = window;
    return window;
  }
}
