/**
 * The order of waiting requests. Two sets of doubly linked lists run through one table: a list per *tier* (priority
 * level 1, its delayed requests, level 2, ...) and, inside each shape group, a list per tier. The first list says whose
 * turn it is, the second which requests may join it, so both questions and every removal cost O(1) however many shapes
 * or requests wait. Invariant: a request is in exactly one tier list and one group list, in the same order.
 */
import type { BatchProfile } from './profile.js';
import { NONE, RequestTable, type Handle } from './request-table.js';

interface List {
  head: Handle;
  tail: Handle;
}

export interface Tier extends List {
  /** Position in the order of service, smaller first: 2 x level for the level itself, one more for its delayed requests. */
  readonly rank: number;
}

/** Requests of one shape key: they may share a batch. */
export interface ShapeGroup {
  readonly index: number;
  key: string;
  /** Sums over every tier. */
  rows: number;
  count: number;
  /** By tier index; holes where the group never had a request. */
  readonly lists: (List | undefined)[];
  profile: BatchProfile;
}

/** Empty groups kept before they are swept, so that a few alternating shapes do not churn. */
const SPARE_GROUPS = 64;

export class PendingQueue {
  readonly table = new RequestTable();
  readonly #tiers: Tier[] = [];
  /** Tier indices by rank. */
  #order: number[] = [];
  readonly #groups: ShapeGroup[] = [];
  readonly #groupByKey = new Map<string, ShapeGroup>();
  readonly #freeGroups: number[] = [];
  #last: ShapeGroup | undefined;
  #liveGroups = 0;
  #count = 0;
  #rows = 0;

  constructor(private readonly profileOf: (shapeKey: string) => BatchProfile) {}

  get count(): number {
    return this.#count;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Groups that hold a request. */
  get liveGroups(): number {
    return this.#liveGroups;
  }

  /** Tier indices in the order of service. */
  get order(): readonly number[] {
    return this.#order;
  }

  groupAt(index: number): ShapeGroup {
    return this.#groups[index] as ShapeGroup;
  }

  groupOf(handle: Handle): ShapeGroup {
    return this.#groups[this.table.group[handle] as number] as ShapeGroup;
  }

  /** The request whose turn it is: the oldest of the first tier that has one; NONE when empty. */
  first(): Handle {
    for (const tier of this.#order) {
      const head = (this.#tiers[tier] as Tier).head;
      if (head !== NONE) return head;
    }
    return NONE;
  }

  /** The tier of a level, made on first use, so that a thousand configured levels cost nothing. */
  tierOf(level: number, delayed: boolean): number {
    const rank = 2 * level + (delayed ? 1 : 0);
    for (const tier of this.#order) if ((this.#tiers[tier] as Tier).rank === rank) return tier;
    const index = this.#tiers.push({ rank, head: NONE, tail: NONE }) - 1;
    this.#order = [...this.#order, index].sort((a, b) => (this.#tiers[a] as Tier).rank - (this.#tiers[b] as Tier).rank);
    return index;
  }

  /** The enqueue time of the longest waiting request among the heads of `group`. */
  oldestUs(group: ShapeGroup): number {
    let oldest = Infinity;
    for (const list of group.lists) {
      if (!list || list.head === NONE) continue;
      const us = this.table.enqueuedUs[list.head] as number;
      if (us < oldest) oldest = us;
    }
    return oldest;
  }

  groupFor(key: string): ShapeGroup {
    if (this.#last && this.#last.key === key) return this.#last;
    let group = this.#groupByKey.get(key);
    if (!group) {
      if (this.#groupByKey.size >= 2 * this.#liveGroups + SPARE_GROUPS) this.#sweep();
      const index = this.#freeGroups.pop() ?? this.#groups.length;
      group = { index, key, rows: 0, count: 0, lists: [], profile: this.profileOf(key) };
      this.#groups[index] = group;
      this.#groupByKey.set(key, group);
    }
    this.#last = group;
    return group;
  }

  /** Links a slot whose `rows` are set; at the front for work that comes back. */
  insert(handle: Handle, tierIndex: number, group: ShapeGroup, atFront: boolean): void {
    const t = this.table;
    t.tier[handle] = tierIndex;
    t.group[handle] = group.index;
    const list = (group.lists[tierIndex] ??= { head: NONE, tail: NONE });
    link(this.#tiers[tierIndex] as Tier, handle, t.nextInTier, t.prevInTier, atFront);
    link(list, handle, t.nextInGroup, t.prevInGroup, atFront);
    const rows = t.rows[handle] as number;
    if (group.count === 0) this.#liveGroups += 1;
    group.count += 1;
    group.rows += rows;
    this.#count += 1;
    this.#rows += rows;
  }

  /** Unlinks a request; its slot stays taken. */
  remove(handle: Handle): void {
    const t = this.table;
    const tierIndex = t.tier[handle] as number;
    const group = this.groupOf(handle);
    unlink(this.#tiers[tierIndex] as Tier, handle, t.nextInTier, t.prevInTier);
    unlink(group.lists[tierIndex] as List, handle, t.nextInGroup, t.prevInGroup);
    const rows = t.rows[handle] as number;
    group.count -= 1;
    group.rows -= rows;
    if (group.count === 0) this.#liveGroups -= 1;
    this.#count -= 1;
    this.#rows -= rows;
  }

  #sweep(): void {
    for (const [key, group] of this.#groupByKey) {
      if (group.count > 0) continue;
      this.#groupByKey.delete(key);
      this.#freeGroups.push(group.index);
    }
    this.#last = undefined;
  }
}

function link(list: List, handle: Handle, next: Int32Array, prev: Int32Array, atFront: boolean): void {
  if (list.head === NONE) {
    next[handle] = NONE;
    prev[handle] = NONE;
    list.head = handle;
    list.tail = handle;
  } else if (atFront) {
    next[handle] = list.head;
    prev[handle] = NONE;
    prev[list.head] = handle;
    list.head = handle;
  } else {
    next[handle] = NONE;
    prev[handle] = list.tail;
    next[list.tail] = handle;
    list.tail = handle;
  }
}

function unlink(list: List, handle: Handle, next: Int32Array, prev: Int32Array): void {
  const before = prev[handle] as number;
  const after = next[handle] as number;
  if (before === NONE) list.head = after;
  else next[before] = after;
  if (after === NONE) list.tail = before;
  else prev[after] = before;
}
