/**
 * The highest epoch that this worker has met, per partition: what fences off an owner that does not know yet that it is
 * none. Never goes down while the process lives, so it also outlives a Redis that lost its data.
 */
import { isCurrentEpoch, type Epoch } from '@paceline/protocol';

export class PartitionEpochs {
  readonly #highest = new Map<number, Epoch>();

  /** @returns undefined when it may act, and is the highest from now on; else the one in its way */
  offer(partition: number, epoch: Epoch): Epoch | undefined {
    const known = this.#highest.get(partition);
    if (known && !isCurrentEpoch(epoch, known)) return known;
    if (known?.number !== epoch.number) this.#highest.set(partition, epoch);
    return undefined;
  }

  /** Whether somebody has claimed the partition above `epoch`. */
  isSuperseded(partition: number, epoch: Epoch): boolean {
    const known = this.#highest.get(partition);
    return known !== undefined && (known.number !== epoch.number || known.owner !== epoch.owner);
  }

  list(): { readonly partition: number; readonly epoch: Epoch }[] {
    return [...this.#highest].map(([partition, epoch]) => ({ partition, epoch }));
  }
}
