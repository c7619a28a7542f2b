/**
 * The waiting requests as a struct of arrays: one slot, named by a small integer handle, per request. Owns which slots
 * are free; the links belong to the queue that threads its lists through them. A handle is valid from `take` to `free`.
 */

/** Name of a waiting request inside one batcher; reused after the request has left the queue. */
export type Handle = number;

/** No request. */
export const NONE = -1;

export class RequestTable {
  rows: Int32Array;
  level: Float64Array;
  /** Index of the tier (see PendingQueue) that holds the request. */
  tier: Int32Array;
  /** Index of its shape group. */
  group: Int32Array;
  enqueuedUs: Float64Array;
  /** When the request is refused, at the latest; differs from the key in the expiry heap for a level with DELAY. */
  refuseUs: Float64Array;
  /** When its timeout acts: as `refuseUs` except for a level with DELAY. */
  timeoutUs: Float64Array;
  /** When it must have started to meet the latency objective; Infinity where none binds it. */
  latestUs: Float64Array;
  nextInTier: Int32Array;
  prevInTier: Int32Array;
  nextInGroup: Int32Array;
  prevInGroup: Int32Array;
  #used = 0;
  #freeHead = NONE;
  #capacity: number;

  constructor(capacity = 64) {
    this.#capacity = capacity;
    this.rows = new Int32Array(capacity);
    this.level = new Float64Array(capacity);
    this.tier = new Int32Array(capacity);
    this.group = new Int32Array(capacity);
    this.enqueuedUs = new Float64Array(capacity);
    this.refuseUs = new Float64Array(capacity);
    this.timeoutUs = new Float64Array(capacity);
    this.latestUs = new Float64Array(capacity);
    this.nextInTier = new Int32Array(capacity);
    this.prevInTier = new Int32Array(capacity);
    this.nextInGroup = new Int32Array(capacity);
    this.prevInGroup = new Int32Array(capacity);
  }

  /** A free slot; its fields hold whatever the last owner left. */
  take(): Handle {
    const free = this.#freeHead;
    if (free !== NONE) {
      this.#freeHead = this.nextInTier[free] as number;
      return free;
    }
    if (this.#used === this.#capacity) this.#grow();
    return this.#used++;
  }

  free(handle: Handle): void {
    this.nextInTier[handle] = this.#freeHead;
    this.#freeHead = handle;
  }

  #grow(): void {
    this.#capacity *= 2;
    const ints = (old: Int32Array): Int32Array => {
      const grown = new Int32Array(this.#capacity);
      grown.set(old);
      return grown;
    };
    const floats = (old: Float64Array): Float64Array => {
      const grown = new Float64Array(this.#capacity);
      grown.set(old);
      return grown;
    };
    this.rows = ints(this.rows);
    this.level = floats(this.level);
    this.tier = ints(this.tier);
    this.group = ints(this.group);
    this.enqueuedUs = floats(this.enqueuedUs);
    this.refuseUs = floats(this.refuseUs);
    this.timeoutUs = floats(this.timeoutUs);
    this.latestUs = floats(this.latestUs);
    this.nextInTier = ints(this.nextInTier);
    this.prevInTier = ints(this.prevInTier);
    this.nextInGroup = ints(this.nextInGroup);
    this.prevInGroup = ints(this.prevInGroup);
  }
}
