/**
 * Large messages that are arriving over one connection. Each has one exactly sized buffer, taken from the budget of the
 * process before anything of it may be sent; the sender may be ahead of what has been taken in by one window at most. A
 * sender that goes beyond either is cut off.
 */
import { FrameError, MESSAGE } from './frames.js';
import type { ReceiveBudget } from './receive-budget.js';

/** Credit of one transfer, bytes; small enough that small frames behind it wait for about a millisecond. */
export const WINDOW_BYTES = 1024 * 1024;

export interface TransferSink {
  grant(transfer: number, bytes: number): void;
  refuse(transfer: number): void;
  /** The message is whole. */
  onMessage(type: number, body: Buffer): void;
}

interface Incoming {
  readonly type: number;
  readonly bytes: number;
  buffer: Buffer | undefined;
  have: number;
  /** Up to which byte the sender may send. */
  allowed: number;
  giveBack: () => void;
}

export class TransfersIn {
  readonly #incoming = new Map<number, Incoming>();

  constructor(
    private readonly sink: TransferSink,
    private readonly budget: ReceiveBudget,
  ) {}

  /** @throws FrameError when the transfer exists already, has no size or is not of a message */
  begin(transfer: number, type: number, bytes: number): void {
    if (this.#incoming.has(transfer) || !Number.isSafeInteger(bytes) || bytes <= 0 || type < MESSAGE) {
      throw new FrameError(`transfer ${transfer} of ${bytes} bytes and type ${type} begins twice, or cannot be`);
    }
    if (!this.budget.fits(bytes)) {
      this.sink.refuse(transfer);
      return;
    }
    const incoming: Incoming = { type, bytes, buffer: undefined, have: 0, allowed: 0, giveBack: () => undefined };
    this.#incoming.set(transfer, incoming);
    incoming.giveBack = this.budget.take(bytes, () => {
      incoming.buffer = Buffer.allocUnsafeSlow(bytes);
      this.#allow(transfer, incoming);
    });
  }

  /** @throws FrameError when it goes beyond what was granted */
  chunk(transfer: number, piece: Buffer): void {
    const incoming = this.#incoming.get(transfer);
    if (!incoming?.buffer || incoming.have + piece.byteLength > incoming.allowed) {
      throw new FrameError(`transfer ${transfer} sent ${piece.byteLength} bytes that were not granted`);
    }
    piece.copy(incoming.buffer, incoming.have);
    incoming.have += piece.byteLength;
    if (incoming.have < incoming.bytes) {
      if (incoming.allowed - incoming.have <= WINDOW_BYTES / 2) this.#allow(transfer, incoming);
      return;
    }
    this.#incoming.delete(transfer);
    incoming.giveBack();
    this.sink.onMessage(incoming.type, incoming.buffer);
  }

  /** The connection is gone: what had arrived of them is dropped. */
  clear(): void {
    const all = [...this.#incoming.values()];
    this.#incoming.clear();
    for (const incoming of all) incoming.giveBack();
  }

  #allow(transfer: number, incoming: Incoming): void {
    const allowed = Math.min(incoming.bytes, incoming.have + WINDOW_BYTES);
    if (allowed > incoming.allowed) this.sink.grant(transfer, allowed - incoming.allowed);
    incoming.allowed = allowed;
  }
}
