/** The priority levels that requests have used: their queue policy, their place in the order, and how full they are. */
import type { PendingQueue } from './pending-queue.js';
import { levelOf, type BatchPolicy, type LevelPolicy } from './policy.js';

export interface Level {
  readonly number: number;
  readonly policy: LevelPolicy;
  readonly tier: number;
  /** Queued or staged. */
  occupied: number;
}

export class Levels {
  readonly #levels = new Map<number, Level>();

  constructor(
    private readonly policy: BatchPolicy,
    private readonly queue: PendingQueue,
  ) {}

  /** The level of a request that asked for `priority`. */
  for(priority: number): Level {
    return this.get(levelOf(this.policy, priority));
  }

  /** Made on first use, so that a thousand configured levels cost nothing. */
  get(number: number): Level {
    let level = this.#levels.get(number);
    if (!level) {
      level = {
        number,
        policy: this.policy.queueByLevel.get(number) ?? this.policy.defaultQueue,
        tier: this.queue.tierOf(number, false),
        occupied: 0,
      };
      this.#levels.set(number, level);
    }
    return level;
  }
}
