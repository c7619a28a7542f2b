/**
 * Whether this scheduler takes part: shares in the partitions and may decide about models. Invariant: one that reaches no
 * gateway while there are some holds nothing, because whatever it held would be served by nobody. Those who are there and
 * lose their gateways keep what they have for a while: a gateway that died is gone from the membership soon.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Member } from '@paceline/protocol';

export interface StandingOptions {
  readonly clock: Clock;
  /** How long no gateway may be reached before everything is given up, milliseconds; longer than a dead one stays a member. */
  readonly graceMs: number;
  /** Gateways that are connected now. */
  readonly connected: () => number;
  readonly onChange: (takesPart: boolean) => void;
}

export class Standing {
  #takesPart = false;
  #gateways = 0;
  #alone: Timer | undefined;

  constructor(private readonly options: StandingOptions) {}

  get takesPart(): boolean {
    return this.#takesPart;
  }

  setMembers(members: readonly Member[]): void {
    this.#gateways = members.filter(({ role, draining }) => role === 'gateway' && !draining).length;
    this.look();
  }

  /** A connection to a gateway came or went. */
  look(): void {
    const { clock, graceMs, connected } = this.options;
    if (connected() > 0) {
      this.#stopWaiting();
      this.#set(true);
    } else if (!this.#takesPart || this.#gateways === 0) {
      this.#stopWaiting();
    } else {
      this.#alone ??= clock.setTimer(graceMs * 1000, () => {
        this.#alone = undefined;
        this.#set(false);
      });
    }
  }

  close(): void {
    this.#stopWaiting();
  }

  #stopWaiting(): void {
    this.#alone?.cancel();
    this.#alone = undefined;
  }

  #set(takesPart: boolean): void {
    if (takesPart === this.#takesPart) return;
    this.#takesPart = takesPart;
    this.options.onChange(takesPart);
  }
}
