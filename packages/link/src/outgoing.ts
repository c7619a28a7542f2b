/** One message on its way out, and the walk over its parts that cuts it into chunks without joining them. */

export interface Outgoing {
  /** Grows by one with each message of a peer: the order in which they were given. */
  readonly number: number;
  /** Type of its frame. */
  readonly type: number;
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
  readonly reliable: boolean;
  /** Messages with the same lane never overtake each other; 0 = in no lane. */
  readonly lane: number;
  /** Called instead of its arrival when the other side has no room for it, ever. */
  readonly onRefused: (() => void) | undefined;
}

/** A message that is being sent in chunks. */
export class OutgoingTransfer {
  credit = 0;
  left: number;
  #part = 0;
  #at = 0;

  constructor(
    readonly id: number,
    readonly message: Outgoing,
  ) {
    this.left = message.bytes;
  }

  /** The next `bytes` bytes, at most {@link left}, as views of the message's parts. */
  take(bytes: number): Uint8Array[] {
    const views: Uint8Array[] = [];
    this.left -= bytes;
    this.credit -= bytes;
    for (let missing = bytes; missing > 0;) {
      const part = this.message.parts[this.#part];
      if (!part) throw new Error('a message has fewer bytes than it said. This is a bug.');
      const taken = Math.min(missing, part.byteLength - this.#at);
      if (taken > 0) views.push(part.subarray(this.#at, this.#at + taken));
      missing -= taken;
      this.#at += taken;
      if (this.#at === part.byteLength) {
        this.#part++;
        this.#at = 0;
      }
    }
    return views;
  }
}

/** First in, first out, without moving what is behind the first. */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first];
    this.#items[this.#first++] = undefined;
    if (this.#first >= 64 && this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  /** Puts items before all others, in their order. */
  unshift(items: readonly T[]): void {
    this.#items = [...items, ...this.toArray()];
    this.#first = 0;
  }

  toArray(): T[] {
    return this.#items.slice(this.#first) as T[];
  }

  clear(): T[] {
    const items = this.toArray();
    this.#items = [];
    this.#first = 0;
    return items;
  }
}
