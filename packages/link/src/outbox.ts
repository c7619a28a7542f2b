/**
 * What one process still owes another: messages that wait to be written, those that were written and not acknowledged,
 * and transfers under way. Both sides count the reliable messages of a session that arrived whole; on one TCP connection
 * they arrive in the order of writing, so a count is all that an acknowledgement and a resumption need, and no message
 * carries a number. Its invariant: each reliable message is here until the other side has said that it has it.
 */
import { CHUNK_BYTES, FrameType } from './frames.js';
import type { FrameWriter } from './frame-writer.js';
import { Fifo, OutgoingTransfer, type Outgoing } from './outgoing.js';

/** Above the limit a sixteenth more is kept for messages this small, so that word of a refusal still finds room, bytes. */
const SMALL_BYTES = 4096;

export class Outbox {
  readonly #waiting = new Fifo<Outgoing>();
  readonly #sent = new Fifo<Outgoing>();
  readonly #transfers: OutgoingTransfer[] = [];
  /** By lane: what waits until a transfer of the same lane has been written. */
  readonly #held = new Map<number, Outgoing[]>();
  #turn = 0;
  #nextTransfer = 1;
  #nextNumber = 1;
  /** How many reliable messages the other side has, as far as is known. */
  #acknowledged = 0;
  #bytes = 0;
  #flushes: { readonly upTo: number; readonly done: () => void }[] = [];

  constructor(private readonly limitBytes: number) {}

  /** Of all messages that are here. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @returns false when the limit is reached: the message has not been taken */
  add(message: Omit<Outgoing, 'number'>): boolean {
    const limitBytes = message.bytes <= SMALL_BYTES ? this.limitBytes * (17 / 16) : this.limitBytes;
    if (this.#bytes + message.bytes > limitBytes) return false;
    this.#bytes += message.bytes;
    const { type, parts, bytes, reliable, lane, onRefused } = message;
    this.#waiting.push({ number: this.#nextNumber++, type, parts, bytes, reliable, lane, onRefused });
    return true;
  }

  /** Writes what may be written while `writable` holds: first what is small, then a chunk of each transfer in turn. */
  write(writer: FrameWriter, writable: () => boolean): void {
    do {
      while (this.#waiting.length > 0 && writable()) this.#writeNext(writer);
    } while (writable() && this.#writeChunk(writer));
  }

  /** The other side has `count` reliable messages of this session. */
  acknowledge(count: number): void {
    while (this.#acknowledged < count && this.#sent.length > 0) {
      const message = this.#sent.shift();
      this.#acknowledged++;
      if (message) this.#bytes -= message.bytes;
    }
    this.#settleFlushes();
  }

  /** A new connection to the same session, which has `count` of them: everything else is written again, in its order. */
  resume(count: number): void {
    this.acknowledge(count);
    this.#acknowledged = count;
    this.#wait([...this.#sent.clear(), ...this.#takeUnwritten()]);
  }

  /** Unreliable messages do not outlive the connection. What was written stays apart: some of it may have arrived. */
  disconnected(): void {
    this.#wait(this.#takeUnwritten().filter((message) => message.reliable || this.#forget(message)));
  }

  grant(id: number, bytes: number): void {
    const transfer = this.#transfers.find((each) => each.id === id);
    if (transfer) transfer.credit = Math.min(transfer.left, transfer.credit + bytes);
  }

  refuse(id: number): void {
    const index = this.#transfers.findIndex((each) => each.id === id);
    const [transfer] = index < 0 ? [] : this.#transfers.splice(index, 1);
    if (!transfer) return;
    this.#bytes -= transfer.message.bytes;
    this.#releaseLane(transfer.message.lane);
    transfer.message.onRefused?.();
    this.#settleFlushes();
  }

  /** Calls `done` once everything reliable that is here now has arrived or was given up. */
  onFlushed(done: () => void): void {
    this.#flushes.push({ upTo: this.#nextNumber - 1, done });
    this.#settleFlushes();
  }

  /** Gives up everything. */
  clear(): void {
    this.#takeUnwritten();
    this.#sent.clear();
    this.#bytes = 0;
    this.#settleFlushes();
  }

  #writeNext(writer: FrameWriter): void {
    const message = this.#waiting.shift();
    if (!message) return;
    const held = message.lane === 0 ? undefined : this.#held.get(message.lane);
    if (held) {
      held.push(message);
    } else if (message.bytes > CHUNK_BYTES) {
      const transfer = new OutgoingTransfer(this.#nextTransfer, message);
      this.#nextTransfer = (this.#nextTransfer + 1) >>> 0;
      this.#transfers.push(transfer);
      if (message.lane !== 0) this.#held.set(message.lane, []);
      writer.header(FrameType.BEGIN, 13);
      writer.u32(transfer.id);
      writer.u8(message.type);
      writer.f64(message.bytes);
    } else {
      writer.frame(message.type, message.parts, message.bytes);
      this.#written(message);
    }
  }

  /** @returns false when no transfer has credit */
  #writeChunk(writer: FrameWriter): boolean {
    for (let tried = 0; tried < this.#transfers.length; tried++) {
      this.#turn = (this.#turn + 1) % this.#transfers.length;
      const transfer = this.#transfers[this.#turn];
      if (!transfer || transfer.credit === 0) continue;
      const bytes = Math.min(CHUNK_BYTES, transfer.credit);
      writer.header(FrameType.CHUNK, bytes + 4);
      writer.u32(transfer.id);
      for (const view of transfer.take(bytes)) writer.part(view);
      if (transfer.left === 0) {
        this.#transfers.splice(this.#turn, 1);
        this.#written(transfer.message);
        this.#releaseLane(transfer.message.lane);
      }
      return true;
    }
    return false;
  }

  #written(message: Outgoing): void {
    if (message.reliable) this.#sent.push(message);
    else this.#bytes -= message.bytes;
  }

  #releaseLane(lane: number): void {
    const held = this.#held.get(lane);
    if (!held) return;
    this.#held.delete(lane);
    this.#waiting.unshift(held);
  }

  #wait(messages: Outgoing[]): void {
    for (const message of messages.sort((a, b) => a.number - b.number)) this.#waiting.push(message);
  }

  #takeUnwritten(): Outgoing[] {
    const all = [...this.#transfers.splice(0).map(({ message }) => message), ...[...this.#held.values()].flat(), ...this.#waiting.clear()];
    this.#held.clear();
    this.#turn = 0;
    return all;
  }

  #forget(message: Outgoing): false {
    this.#bytes -= message.bytes;
    return false;
  }

  #settleFlushes(): void {
    if (this.#flushes.length === 0) return;
    const owed = [
      ...this.#sent.toArray(),
      ...this.#transfers.map(({ message }) => message),
      ...[...this.#held.values()].flat(),
      ...this.#waiting.toArray(),
    ];
    let oldest = Infinity;
    for (const { reliable, number } of owed) if (reliable && number < oldest) oldest = number;
    const settled = this.#flushes.filter(({ upTo }) => upTo < oldest);
    this.#flushes = this.#flushes.filter(({ upTo }) => upTo >= oldest);
    for (const { done } of settled) done();
  }
}
