/**
 * The requests that a lane holds and the state of each. Invariant: the statistics count as pending exactly those that wait
 * here or behind a batch that executes.
 */
import type { Envelope, RequestRef } from '@paceline/protocol';
import type { Handle } from '@paceline/core';
import type { ModelStatistics } from '@paceline/telemetry';
import { ItemIndex } from './item-index.js';
import { isOverdue, isPending, type ItemState, type LaneItem } from './lane-item.js';

export class LaneItems {
  readonly #index = new ItemIndex();
  /** By batcher handle. */
  readonly #queued: (LaneItem | undefined)[] = [];

  constructor(private readonly statistics: ModelStatistics) {}

  find(ref: RequestRef): LaneItem | undefined {
    return this.#index.find(ref);
  }

  /** A request that the batcher has just taken under `handle`. */
  queueNew(envelope: Envelope, handle: Handle, nowUs: number): void {
    const item: LaneItem = { envelope, enqueuedUs: nowUs, state: 'queued', handle, losses: 0, falseStarts: 0, cancelled: false };
    this.statistics.pendingRequests += 1;
    this.statistics.pendingRows += envelope.rows;
    this.#queued[handle] = item;
    this.#index.add(item);
  }

  /** One that was released before, here or by another lane. */
  adopt(item: LaneItem): void {
    this.#index.add(item);
  }

  /** It waits in the batcher again. */
  requeue(item: LaneItem, handle: Handle): void {
    this.setState(item, 'queued');
    item.handle = handle;
    this.#queued[handle] = item;
  }

  /** What the batcher has given out. @throws Error for a handle that it does not hold */
  take(handle: Handle): LaneItem {
    const item = this.#queued[handle];
    if (!item) throw new Error(`the batcher named handle ${handle}, which the lane does not hold. This is a bug.`);
    this.#queued[handle] = undefined;
    return item;
  }

  /** It is no longer this lane's. */
  release(item: LaneItem): void {
    this.#index.delete(item.envelope.ref);
  }

  /** Nothing more will be sent for it. */
  finish(item: LaneItem): void {
    if (item.state === 'queued') this.#queued[item.handle] = undefined;
    this.setState(item, 'done');
    this.release(item);
  }

  /**
   * Takes out of `items`, which are about to be executed, those that nobody waits for any more.
   * @param onDropped told of each
   * @returns their rows
   */
  dropOverdue(items: LaneItem[], nowUs: number, onDropped: (item: LaneItem) => void): number {
    if (!items.some((item) => isOverdue(item, nowUs))) return 0;
    let rows = 0;
    for (const item of items.splice(0)) {
      if (!isOverdue(item, nowUs)) items.push(item);
      else {
        rows += item.envelope.rows;
        this.finish(item);
        onDropped(item);
      }
    }
    return rows;
  }

  setState(item: LaneItem, state: ItemState): void {
    const change = Number(isPending(state)) - Number(isPending(item.state));
    this.statistics.pendingRequests += change;
    this.statistics.pendingRows += change * item.envelope.rows;
    item.state = state;
  }
}
