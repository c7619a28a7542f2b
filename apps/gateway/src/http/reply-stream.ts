/**
 * The way out of a connection: writes the replies that are due and decides which of them is the last. Invariant: nothing
 * is written behind the last reply, and a server that closes looks into the socket once more before it makes a reply the
 * last one, because a request that has reached this machine is answered.
 */
import type { Socket } from 'node:net';
import type { ConnectionHost } from './connection-host.js';
import type { HttpReply } from './infer-reply.js';
import { ReplyQueue, type Slot } from './reply-queue.js';
import { writeReply } from './reply-writer.js';

/** The connection that the replies belong to. */
export interface ReplyStreamOwner {
  /** Whether nothing of a further request has been read. */
  isAtRest(): boolean;
  /** Replies have left, so that there may be room for more requests. */
  onWritten(): void;
  /** The last reply has left. */
  onLastWritten(): void;
}

export class ReplyStream {
  readonly #queue = new ReplyQueue();
  #look: 'none' | 'looking' | 'looked' = 'none';
  #abandoned = false;

  constructor(
    private readonly socket: Socket,
    private readonly host: ConnectionHost,
    private readonly owner: ReplyStreamOwner,
  ) {}

  /** Requests under way. */
  get size(): number {
    return this.#queue.size;
  }

  /** A place behind those taken before; `close` makes it the last. */
  open(close: boolean, reservedBytes: number): Slot {
    return this.#queue.open(close, reservedBytes);
  }

  answer(slot: Slot, reply: HttpReply): void {
    slot.reply = reply;
    if (this.#queue.isNext(slot)) this.#flush();
  }

  /** Sends `reply` behind those that are still to come, and nothing after it. */
  closeWith(reply: HttpReply): void {
    this.#queue.open(true, 0).reply = reply;
    this.#flush();
  }

  /** The client is gone: cancels what runs and gives back what bodies took. */
  abandon(): void {
    this.#abandoned = true;
    this.#queue.abandon((bytes) => this.host.budget.release(bytes));
  }

  #flush(): void {
    for (let slot = this.#queue.due(); slot !== undefined; slot = this.#queue.due()) {
      const last = slot.close || (this.host.closing && this.#queue.size === 1 && this.owner.isAtRest());
      if (last && !slot.close && this.#look !== 'looked') {
        this.#lookFirst();
        return;
      }
      this.#look = 'none';
      this.#queue.shift();
      writeReply(this.socket, slot.reply, this.host.dateLine, last);
      this.host.budget.release(slot.reservedBytes);
      if (last) {
        this.owner.onLastWritten();
        return;
      }
    }
    this.owner.onWritten();
  }

  #lookFirst(): void {
    if (this.#look === 'looking') return;
    this.#look = 'looking';
    afterReading(() => {
      if (this.#abandoned) return;
      this.#look = 'looked';
      this.#flush();
    });
  }
}

/** Calls `then` after a turn of the event loop, which reads what lies in the sockets. */
export function afterReading(then: () => void): void {
  setImmediate(() => setImmediate(then));
}
