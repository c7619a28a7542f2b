/**
 * Tells when a new placement owner knows what is there: two heartbeats have passed, so that whoever lives is a member,
 * and every worker that is a member has said what it has, or has been silent for too long.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Member } from '@paceline/protocol';
import type { WorkerFleet } from './worker-fleet.js';

export class Takeover {
  readonly #known = Promise.withResolvers<void>();
  readonly #least: Timer;
  readonly #limit: Timer;
  #waited = false;

  /** @param members as read last; undefined = not read yet */
  constructor(
    private readonly fleet: WorkerFleet,
    clock: Clock,
    { leastUs, limitUs }: { readonly leastUs: number; readonly limitUs: number },
    private members: readonly Member[] | undefined,
  ) {
    this.#least = clock.setTimer(leastUs, () => {
      this.#waited = true;
      this.check();
    });
    this.#limit = clock.setTimer(limitUs, () => this.end());
  }

  /** Resolves when what is there is known, or the wait is over. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  onMembers(members: readonly Member[]): void {
    this.members = members;
    this.check();
  }

  /** A worker may have said what it has. */
  check(): void {
    if (!this.#waited || this.members === undefined) return;
    const silent = this.members.some(({ role, id }) => role === 'worker' && !this.fleet.workers.has(id));
    if (!silent) this.end();
  }

  /** Waits no longer. */
  end(): void {
    this.#least.cancel();
    this.#limit.cancel();
    this.#known.resolve();
  }
}
