/**
 * When a lane decides: once in a turn of the event loop in which something came, and when its one timer says so. Re-arming for a later time is free: an armed timer that is early stays and the lane, woken,
 * asks again. So a queue whose every request has a timeout does not arm a timer per request.
 */
import type { Clock, Timer } from '@paceline/clock';

export class LaneTimer {
  #timer: Timer | undefined;
  #dueUs = Infinity;
  #immediate: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly wake: () => void,
  ) {}

  /**
   * Makes sure that `wake` is called at `untilUs` or before; Infinity asks for nothing.
   * @param precise false: a millisecond late will do, and the thread may sleep until then
   */
  arm(untilUs: number, precise: boolean): void {
    if (untilUs >= this.#dueUs) return;
    this.cancel();
    this.#dueUs = untilUs;
    const wake = (): void => {
      this.#timer = undefined;
      this.#dueUs = Infinity;
      this.wake();
    };
    const delayUs = untilUs - this.clock.nowUs();
    this.#timer = precise ? this.clock.setPreciseTimer(delayUs, wake) : this.clock.setTimer(delayUs, wake);
  }

  /** Makes sure that `wake` is called once after everything readable in this turn of the event loop has arrived. */
  soon(): void {
    if (this.#immediate) return;
    this.#immediate = this.clock.setImmediate(() => {
      this.#immediate = undefined;
      this.wake();
    });
  }

  /** Takes back what {@link arm} asked for. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#dueUs = Infinity;
  }
}
