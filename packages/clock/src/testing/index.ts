/** A clock that stands still until a test moves it. Timers fire in the order of their due time, then of arming. */
import type { Clock, Timer } from '../index.js';

interface Armed {
  readonly dueUs: number;
  readonly order: number;
  readonly fn: () => void;
}

export class FakeClock implements Clock {
  #nowUs = 0;
  #order = 0;
  readonly #armed = new Set<Armed>();

  nowUs(): number {
    return this.#nowUs;
  }

  wallMs(): number {
    return this.#nowUs / 1000;
  }

  setTimer(delayUs: number, fn: () => void): Timer {
    const armed = { dueUs: this.#nowUs + Math.max(0, delayUs), order: this.#order++, fn };
    this.#armed.add(armed);
    return { cancel: () => this.#armed.delete(armed) };
  }

  setPreciseTimer(delayUs: number, fn: () => void): Timer {
    return this.setTimer(delayUs, fn);
  }

  setImmediate(fn: () => void): Timer {
    return this.setTimer(0, fn);
  }

  /** Moves time forward by `us` microseconds, firing each timer that falls due at its own time. */
  advance(us: number): void {
    const end = this.#nowUs + us;
    for (;;) {
      const next = this.#earliest(end);
      if (!next) break;
      this.#armed.delete(next);
      this.#nowUs = Math.max(this.#nowUs, next.dueUs);
      next.fn();
    }
    this.#nowUs = end;
  }

  /** Number of timers that are armed, to prove that nothing was left behind. */
  get armedCount(): number {
    return this.#armed.size;
  }

  #earliest(endUs: number): Armed | undefined {
    let best: Armed | undefined;
    for (const a of this.#armed) {
      if (a.dueUs > endUs) continue;
      if (!best || a.dueUs < best.dueUs || (a.dueUs === best.dueUs && a.order < best.order)) best = a;
    }
    return best;
  }
}
