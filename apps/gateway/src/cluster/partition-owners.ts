/** Who decides for each partition, as schedulers say. Invariant: per partition only a current epoch replaces another. */
import { isCurrentEpoch, type Epoch } from '@paceline/protocol';

interface Owner {
  readonly epoch: Epoch;
  /** undefined = it gave the partition up, or its connection is gone. */
  readonly scheduler: string | undefined;
}

export class PartitionOwners {
  readonly #owners = new Map<number, Owner>();

  /** @returns whether it is a new right: a scheduler that repeats itself, or was overtaken, changes nothing */
  owns(scheduler: string, partition: number, epoch: Epoch): boolean {
    const known = this.#owners.get(partition);
    if (!isCurrentEpoch(epoch, known?.epoch)) return false;
    this.#owners.set(partition, { epoch, scheduler });
    return known?.epoch.number !== epoch.number;
  }

  /** The epoch that holds where one that is offered does not: whoever offers it must acquire above it. */
  above(partition: number, offered: Epoch): Epoch | undefined {
    const known = this.#owners.get(partition)?.epoch;
    return isCurrentEpoch(offered, known) ? undefined : known;
  }

  released(scheduler: string, partition: number, epoch: Epoch): void {
    const known = this.#owners.get(partition);
    if (known?.scheduler === scheduler && known.epoch.number === epoch.number) this.#owners.set(partition, { epoch, scheduler: undefined });
  }

  onSchedulerDown(scheduler: string): void {
    for (const [partition, owner] of this.#owners)
      if (owner.scheduler === scheduler) this.#owners.set(partition, { epoch: owner.epoch, scheduler: undefined });
  }

  of(partition: number): string | undefined {
    return this.#owners.get(partition)?.scheduler;
  }

  /** How many partitions have an owner that is connected. */
  get count(): number {
    let count = 0;
    for (const { scheduler } of this.#owners.values()) if (scheduler !== undefined) count += 1;
    return count;
  }
}
