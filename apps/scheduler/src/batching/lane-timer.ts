/**
 * The one timer of a lane. Re-arming for a later time is free: an armed timer that is early stays and the lane, woken,
 * asks again. So a queue whose every request has a timeout does not arm a timer per request.
 */
import type { Clock, Timer } from '@paceline/clock';

export class LaneTimer {
  #timer: Timer | undefined;
  #dueUs = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly wake: () => void,
  ) {}

  /** Makes sure that `wake` is called at `untilUs` or before; Infinity asks for nothing. */
  arm(untilUs: number): void {
    if (untilUs >= this.#dueUs) return;
    this.cancel();
    this.#dueUs = untilUs;
    this.#timer = this.clock.setPreciseTimer(untilUs - this.clock.nowUs(), () => {
      this.#timer = undefined;
      this.#dueUs = Infinity;
      this.wake();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#dueUs = Infinity;
  }
}
