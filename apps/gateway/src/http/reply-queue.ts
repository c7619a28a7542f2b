/**
 * The requests of one connection that are under way, in order, and their replies. Invariant: a reply leaves only when
 * every reply before it has left.
 */
import type { HttpReply } from './infer-reply.js';
import type { CancelInfer } from './infer-route.js';

/** A request under way and the place of its reply. */
export interface Slot {
  /** The connection ends with this reply. */
  readonly close: boolean;
  /** What its body takes of the byte budget. */
  readonly reservedBytes: number;
  cancel: CancelInfer | undefined;
  reply: HttpReply | undefined;
}

export class ReplyQueue {
  readonly #slots: Slot[] = [];

  get size(): number {
    return this.#slots.length;
  }

  open(close: boolean, reservedBytes: number): Slot {
    const slot: Slot = { close, reservedBytes, cancel: undefined, reply: undefined };
    this.#slots.push(slot);
    return slot;
  }

  /** Whether the reply of `slot` may leave now. */
  isNext(slot: Slot): boolean {
    return this.#slots[0] === slot;
  }

  /** The oldest request if it has its reply. */
  due(): (Slot & { readonly reply: HttpReply }) | undefined {
    const slot = this.#slots[0];
    return slot?.reply === undefined ? undefined : (slot as Slot & { readonly reply: HttpReply });
  }

  /** Removes the oldest request. */
  shift(): void {
    this.#slots.shift();
  }

  /** The client is gone: cancels what runs and gives back what bodies took. */
  abandon(release: (bytes: number) => void): void {
    for (const slot of this.#slots.splice(0)) {
      release(slot.reservedBytes);
      slot.cancel?.();
    }
  }
}
