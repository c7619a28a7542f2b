/**
 * Keeps this process in the membership and tells who else is there. Invariant: while Redis cannot be asked the last answer
 * holds, so nobody is taken to be gone because Redis is.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Membership } from '@paceline/cluster-state';
import { toServingError, type Member, type ServingError } from '@paceline/protocol';

export interface MembershipBeatOptions {
  readonly membership: Membership;
  readonly clock: Clock;
  /** Milliseconds between two beats. */
  readonly intervalMs: number;
  /** How long this process counts as there after a beat; default 4 intervals. */
  readonly lifetimeMs?: number;
  /** Called at the first answer and whenever it has changed. This process is among them. */
  readonly onMembers: (members: readonly Member[]) => void;
  /** Called when beats begin to fail, and with undefined when they succeed again. */
  readonly onFailure?: (error: ServingError | undefined) => void;
}

/** How many beats in a row may fail to arrive until the process is taken to be gone. */
const BEATS_PER_LIFETIME = 4;

export class MembershipBeat {
  readonly #options: MembershipBeatOptions;
  readonly #ttlMs: number;
  #self: Member;
  #timer: Timer | undefined;
  #beating: Promise<void> | undefined;
  #again = false;
  #stopped = false;
  #failing = false;
  #answered = false;
  #members: readonly Member[] = [];
  /** Since when no beat succeeded; undefined = the last one did. */
  #failingSinceUs: number | undefined;

  constructor(self: Member, options: MembershipBeatOptions) {
    this.#self = self;
    this.#options = options;
    this.#ttlMs = options.lifetimeMs ?? BEATS_PER_LIFETIME * options.intervalMs;
  }

  get members(): readonly Member[] {
    return this.#members;
  }

  /** Whether Redis has answered at least once. */
  get answered(): boolean {
    return this.#answered;
  }

  /** For how long no beat has succeeded, milliseconds; 0 = the last one did. */
  get failingMs(): number {
    return this.#failingSinceUs === undefined ? 0 : (this.#options.clock.nowUs() - this.#failingSinceUs) / 1000;
  }

  /** Resolves after the first beat, whether it succeeded or not. */
  async start(): Promise<void> {
    await this.#beat();
  }

  /** Tells the others at once, not with the next beat. Resolves when it is told or Redis could not be reached. */
  async announce(change: Partial<Pick<Member, 'draining' | 'address'>>): Promise<void> {
    this.#self = { ...this.#self, ...change };
    await this.#beat();
  }

  /** No beat follows, and the others know at once if Redis can be reached. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#beating;
    await this.#options.membership.leave(this.#self).catch(() => undefined);
  }

  /** One at a time; whoever asks during one gets another after it. */
  #beat(): Promise<void> {
    if (this.#beating) this.#again = true;
    this.#beating ??= this.#run().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #run(): Promise<void> {
    const { membership, clock, intervalMs } = this.#options;
    do {
      this.#again = false;
      this.#timer?.cancel();
      const sentUs = clock.nowUs();
      try {
        this.#take(await membership.beat(this.#self, this.#ttlMs));
      } catch (thrown) {
        this.#fail(toServingError(thrown), sentUs);
      }
      if (!this.#stopped) this.#timer = clock.setTimer(Math.max(0, intervalMs * 1000 - (clock.nowUs() - sentUs)), () => void this.#beat());
    } while (this.#again && !this.#stopped);
  }

  #take(members: readonly Member[]): void {
    const { onMembers, onFailure } = this.#options;
    this.#failingSinceUs = undefined;
    if (this.#failing) {
      this.#failing = false;
      onFailure?.(undefined);
    }
    const changed = !this.#answered || !sameMembers(members, this.#members);
    this.#answered = true;
    this.#members = members;
    if (changed && !this.#stopped) onMembers(members);
  }

  #fail(error: ServingError, sinceUs: number): void {
    this.#failingSinceUs ??= sinceUs;
    if (this.#failing) return;
    this.#failing = true;
    this.#options.onFailure?.(error);
  }
}

function sameMembers(a: readonly Member[], b: readonly Member[]): boolean {
  if (a.length !== b.length) return false;
  const byId = new Map(b.map((member) => [member.id, member]));
  return a.every(({ id, address, draining }) => {
    const other = byId.get(id);
    return other !== undefined && other.address === address && other.draining === draining;
  });
}
