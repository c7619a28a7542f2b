/**
 * Large messages that are arriving over one connection. Each has one exactly sized buffer, taken from the budget of the
 * process before anything of it may be sent; the sender may be ahead of what has been taken in by one window each and by
 * four in all, however many there are, since small frames wait behind whatever is on its way. Those that find no window
 * free get theirs in turn. A sender that goes beyond what it was granted is cut off.
 */
import { FrameError, MESSAGE } from './frames.js';
import type { ReceiveBudget } from './receive-budget.js';

/** Credit of one transfer, and of all together, bytes: what a network takes in a millisecond or two. */
const WINDOW_BYTES = 512 * 1024;
const ALL_WINDOWS_BYTES = 4 * WINDOW_BYTES;

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
  /** Those that wait for credit, in order. */
  readonly #starved = new Map<number, Incoming>();
  /** Granted and not arrived yet, over all of them. */
  #underWayBytes = 0;

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
      if (this.#incoming.get(transfer) !== incoming) return;
      incoming.buffer = Buffer.allocUnsafeSlow(bytes);
      this.#starved.set(transfer, incoming);
      this.#serve();
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
    this.#underWayBytes -= piece.byteLength;
    const wanting = incoming.allowed < incoming.bytes && incoming.allowed - incoming.have <= WINDOW_BYTES / 2;
    if (wanting) this.#starved.set(transfer, incoming);
    this.#serve();
    if (incoming.have < incoming.bytes) return;
    this.#incoming.delete(transfer);
    incoming.giveBack();
    this.sink.onMessage(incoming.type, incoming.buffer);
  }

  /** The connection is gone: what had arrived of them is dropped. */
  clear(): void {
    const all = [...this.#incoming.values()];
    this.#incoming.clear();
    this.#starved.clear();
    this.#underWayBytes = 0;
    for (const incoming of all) incoming.giveBack();
  }

  #serve(): void {
    for (const [transfer, incoming] of this.#starved) {
      const allowed = Math.min(incoming.bytes, incoming.have + WINDOW_BYTES);
      const bytes = allowed - incoming.allowed;
      if (this.#underWayBytes + bytes > ALL_WINDOWS_BYTES) return;
      this.#starved.delete(transfer);
      this.#underWayBytes += bytes;
      incoming.allowed = allowed;
      this.sink.grant(transfer, bytes);
    }
  }
}
