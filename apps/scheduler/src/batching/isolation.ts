/**
 * The requests of a lane that are to be executed in batches of their own: `alone` on an ordinary instance, because one of
 * its batch may be at fault; `quarantined` where they harm nobody, because one of them takes its instance down.
 */
import type { LaneItem } from './lane-item.js';

export type IsolatedState = 'alone' | 'quarantined';

export class Isolation {
  #alone: LaneItem[] = [];
  #quarantined: LaneItem[] = [];

  get size(): number {
    return this.#alone.length + this.#quarantined.length;
  }

  /** How many wait for an ordinary instance. */
  get waitingAlone(): number {
    return this.#alone.length;
  }

  /** Before all others in that state: whoever comes here has waited before. */
  addFirst(item: LaneItem, state: IsolatedState): void {
    if (state === 'alone') this.#alone.unshift(item);
    else this.#quarantined.unshift(item);
  }

  remove(item: LaneItem): void {
    const others = (other: LaneItem) => other !== item;
    this.#alone = this.#alone.filter(others);
    this.#quarantined = this.#quarantined.filter(others);
  }

  next(state: IsolatedState): LaneItem | undefined {
    return (state === 'alone' ? this.#alone : this.#quarantined).shift();
  }

  /** Empties it; oldest last, so that adding them one by one elsewhere keeps their order. */
  takeAll(): LaneItem[] {
    return [...this.#alone.splice(0), ...this.#quarantined.splice(0)].reverse();
  }
}
