/**
 * What is to be sent over one stream: collected until the event loop has handled what was ready, then sent as one
 * message; while the stream is full it collects further. Order is kept.
 */
import type { Clock, Timer } from '@paceline/clock';
import { WireWriter } from '@paceline/protocol/wire';

/** The sending half of a gRPC stream. */
export interface RawSink {
  /** @returns false when it is full; `onDrain` is called when it takes more */
  write(message: Buffer): boolean;
  onDrain(then: () => void): void;
}

/** What can wait goes out after this long at the latest, microseconds. */
const LEISURE_US = 2000;
/** A message of this size is sent without waiting for the end of the tick. */
const FULL_BYTES = 1024 * 1024;

export class Outbox {
  #writer: WireWriter | undefined;
  #due: Timer | undefined;
  #urgent = false;
  #full = false;
  #closed = false;
  /** Messages sent so far. */
  sentCount = 0;

  constructor(
    private readonly sink: RawSink,
    private readonly clock: Clock,
  ) {
    sink.onDrain(() => {
      this.#full = false;
      this.#flush();
    });
  }

  /**
   * Adds a word; `write` writes its fields.
   * @param kind of {@link TO_WORKER} or {@link TO_SCHEDULER}
   * @param leisurely it may wait some milliseconds for others to go with it
   */
  add(kind: number, write?: (writer: WireWriter) => void, leisurely = false): void {
    if (this.#closed) return;
    const writer = (this.#writer ??= new WireWriter());
    writer.u8(kind);
    write?.(writer);
    if (writer.totalBytes >= FULL_BYTES) return this.#flush();
    if (!leisurely && !this.#urgent) {
      this.#urgent = true;
      this.#due?.cancel();
      this.#due = this.clock.setImmediate(() => this.#flush());
    } else {
      this.#due ??= this.clock.setTimer(LEISURE_US, () => this.#flush());
    }
  }

  /** Nothing is sent any more. */
  close(): void {
    this.#closed = true;
    this.#due?.cancel();
    this.#writer = undefined;
  }

  #flush(): void {
    this.#due?.cancel();
    this.#due = undefined;
    this.#urgent = false;
    const writer = this.#writer;
    if (!writer || this.#full || this.#closed) return;
    this.#writer = undefined;
    const parts = writer.finish();
    const message = parts.length === 1 ? Buffer.from(parts[0]!.buffer, parts[0]!.byteOffset, parts[0]!.byteLength) : Buffer.concat(parts);
    this.sentCount += 1;
    this.#full = !this.sink.write(message);
  }
}
