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
  /** Calls `fn` after the I/O that is ready now has been handled, and before any waiting. */
  setImmediate(fn: () => void): Timer;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  nowUs: () => performance.now() * 1000,
  wallMs: () => Date.now(),
  setTimer(delayUs, fn) {
    const handle = setTimeout(fn, Math.max(0, Math.ceil(delayUs / 1000)));
    return { cancel: () => clearTimeout(handle) };
  },
  setImmediate(fn) {
    const handle = setImmediate(fn);
    return { cancel: () => clearImmediate(handle) };
  },
};
