/** The unanswered requests of a lane by their ref, for cancels. One map a gateway; the last one used is kept at hand. */
import type { RequestRef } from '@paceline/protocol';
import type { LaneItem } from './lane-item.js';

export class ItemIndex {
  readonly #byGateway = new Map<string, Map<number, LaneItem>>();
  #lastGateway = '';
  #last: Map<number, LaneItem> | undefined;

  find(ref: RequestRef): LaneItem | undefined {
    return this.#of(ref.gateway)?.get(ref.number);
  }

  add(item: LaneItem): void {
    const { gateway, number } = item.envelope.ref;
    let items = this.#of(gateway);
    if (!items) {
      items = new Map();
      this.#byGateway.set(gateway, items);
      this.#lastGateway = gateway;
      this.#last = items;
    }
    items.set(number, item);
  }

  delete(ref: RequestRef): void {
    const items = this.#of(ref.gateway);
    if (!items?.delete(ref.number) || items.size > 0 || this.#byGateway.size < 2) return;
    this.#byGateway.delete(ref.gateway);
    this.#last = undefined;
  }

  #of(gateway: string): Map<number, LaneItem> | undefined {
    if (this.#last && this.#lastGateway === gateway) return this.#last;
    const items = this.#byGateway.get(gateway);
    if (items) {
      this.#lastGateway = gateway;
      this.#last = items;
    }
    return items;
  }
}
