/**
 * Time as a port. Everything that waits or measures outside the pure core takes a {@link Clock}, so that tests advance
 * time instead of sleeping.
 */

/** A timer that has been armed; `cancel` is idempotent. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Monotonic time in microseconds (fractions kept); meaningful only as a difference inside one process. */
  nowUs(): number;
  /** Wall time in milliseconds since the epoch, for display only. */
  wallMs(): number;
  /** Calls `fn` once, no earlier than `delayUs` microseconds from now. Millisecond granularity is allowed. */
  setTimer(delayUs: number, fn: () => void): Timer;
  /**
   * As {@link setTimer}, but late by no more than a turn of the event loop, for delays well under two milliseconds: it
   * polls, so other work goes on but the thread does not sleep. Longer delays get an ordinary timer.
   */
  setPreciseTimer(delayUs: number, fn: () => void): Timer;
  /** Calls `fn` after the I/O that is ready now has been handled, and before any waiting. */
  setImmediate(fn: () => void): Timer;
}

/** Beyond this the millisecond that an ordinary timer may be late does not matter, and polling would waste a core. */
const PRECISE_MAX_US = 2000;

/** The clock of the machine. */
export const systemClock: Clock = {
  nowUs: () => performance.now() * 1000,
  wallMs: () => Date.now(),
  setTimer(delayUs, fn) {
    const handle = setTimeout(fn, Math.max(0, Math.ceil(delayUs / 1000)));
    return { cancel: () => clearTimeout(handle) };
  },
  setPreciseTimer(delayUs, fn) {
    if (delayUs > PRECISE_MAX_US) return systemClock.setTimer(delayUs, fn);
    const dueMs = performance.now() + delayUs / 1000;
    const poll = (): void => {
      if (performance.now() >= dueMs) fn();
      else handle = setImmediate(poll);
    };
    let handle = setImmediate(poll);
    return { cancel: () => clearImmediate(handle) };
  },
  setImmediate(fn) {
    const handle = setImmediate(fn);
    return { cancel: () => clearImmediate(handle) };
  },
};
