/**
 * Whether the other end of a stream lives: each side says something twice a second, and believes the other gone when it
 * has looked five times in a row and heard nothing. Looks are counted, not time: who was itself stopped for a while reads
 * what has come in before it judges.
 */
import type { Clock, Timer } from '@paceline/clock';

const LOOK_US = 500_000;
const SILENT_LOOKS = 5;

export class Liveness {
  #timer: Timer;
  #silentLooks = 0;
  #stopped = false;

  /**
   * @param ping called at each look
   * @param dead called once
   */
  constructor(
    private readonly clock: Clock,
    private readonly ping: () => void,
    private readonly dead: () => void,
  ) {
    this.#timer = clock.setTimer(LOOK_US, () => this.#look());
  }

  heard(): void {
    this.#silentLooks = 0;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer.cancel();
  }

  #look(): void {
    this.#silentLooks += 1;
    if (this.#silentLooks > SILENT_LOOKS) {
      this.#stopped = true;
      return this.dead();
    }
    this.ping();
    if (!this.#stopped) this.#timer = this.clock.setTimer(LOOK_US, () => this.#look());
  }
}
