/**
 * A binary min-heap of small integers (handles) with a key each, where any member can be removed or re-keyed in
 * O(log n). Invariant: `position[handle]` is the handle's place in the heap, or -1. Keys that only grow, the usual case
 * of deadlines, are inserted in O(1).
 */
export class IndexedHeap {
  #handles: Int32Array;
  #keys: Float64Array;
  #position: Int32Array;
  #size = 0;

  constructor(capacity = 64) {
    this.#handles = new Int32Array(capacity);
    this.#keys = new Float64Array(capacity);
    this.#position = new Int32Array(capacity).fill(-1);
  }

  get size(): number {
    return this.#size;
  }

  /** The smallest key; Infinity when empty. */
  get minKey(): number {
    return this.#size === 0 ? Infinity : (this.#keys[0] as number);
  }

  /** The handle of the smallest key; -1 when empty. */
  get minHandle(): number {
    return this.#size === 0 ? -1 : (this.#handles[0] as number);
  }

  has(handle: number): boolean {
    return handle < this.#position.length && (this.#position[handle] as number) >= 0;
  }

  /** Inserts `handle`, or moves it where it is in already. */
  set(handle: number, key: number): void {
    if (handle >= this.#position.length) this.#grow(handle);
    const at = this.#position[handle] as number;
    if (at < 0) {
      this.#up(this.#size++, handle, key);
    } else if (key < (this.#keys[at] as number)) {
      this.#up(at, handle, key);
    } else {
      this.#down(at, handle, key);
    }
  }

  /** Removes `handle`; no-op where it is not in. */
  delete(handle: number): void {
    if (handle >= this.#position.length) return;
    const at = this.#position[handle] as number;
    if (at < 0) return;
    this.#position[handle] = -1;
    const last = --this.#size;
    if (at === last) return;
    const moved = this.#handles[last] as number;
    const key = this.#keys[last] as number;
    const parent = (at - 1) >> 1;
    if (at > 0 && key < (this.#keys[parent] as number)) this.#up(at, moved, key);
    else this.#down(at, moved, key);
  }

  #up(start: number, handle: number, key: number): void {
    const handles = this.#handles;
    const keys = this.#keys;
    let at = start;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const parentKey = keys[parent] as number;
      if (parentKey <= key) break;
      const parentHandle = handles[parent] as number;
      handles[at] = parentHandle;
      keys[at] = parentKey;
      this.#position[parentHandle] = at;
      at = parent;
    }
    handles[at] = handle;
    keys[at] = key;
    this.#position[handle] = at;
  }

  #down(start: number, handle: number, key: number): void {
    const handles = this.#handles;
    const keys = this.#keys;
    const size = this.#size;
    let at = start;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && (keys[child + 1] as number) < (keys[child] as number)) child += 1;
      const childKey = keys[child] as number;
      if (childKey >= key) break;
      const childHandle = handles[child] as number;
      handles[at] = childHandle;
      keys[at] = childKey;
      this.#position[childHandle] = at;
      at = child;
    }
    handles[at] = handle;
    keys[at] = key;
    this.#position[handle] = at;
  }

  #grow(handle: number): void {
    const capacity = Math.max(handle + 1, this.#position.length * 2);
    const handles = new Int32Array(capacity);
    handles.set(this.#handles);
    this.#handles = handles;
    const keys = new Float64Array(capacity);
    keys.set(this.#keys);
    this.#keys = keys;
    const position = new Int32Array(capacity).fill(-1);
    position.set(this.#position);
    this.#position = position;
  }
}
