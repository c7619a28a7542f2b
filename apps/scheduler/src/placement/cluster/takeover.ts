/**
 * Tells when a new placement owner knows what is there: membership has been read twice since it took over, and every
 * worker that is a member has said what it has, or has been silent for too long.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Member } from '@paceline/protocol';
import type { WorkerFleet } from './worker-fleet.js';

/** What the first beat names may have been connected to since the second. */
const BEATS = 2;

export class Takeover {
  readonly #known = Promise.withResolvers<void>();
  readonly #timer: Timer;
  #beats = 0;
  #members: readonly Member[] = [];

  constructor(
    private readonly fleet: WorkerFleet,
    clock: Clock,
    limitUs: number,
  ) {
    this.#timer = clock.setTimer(limitUs, () => this.end());
  }

  /** Resolves when what is there is known, or the wait is over. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  onBeat(members: readonly Member[]): void {
    this.#beats += 1;
    this.#members = members;
    this.check();
  }

  /** A worker may have said what it has. */
  check(): void {
    if (this.#beats < BEATS) return;
    const silent = this.#members.some(({ role, id }) => role === 'worker' && !this.fleet.workers.has(id));
    if (!silent) this.end();
  }

  /** Waits no longer. */
  end(): void {
    this.#timer.cancel();
    this.#known.resolve();
  }
}
