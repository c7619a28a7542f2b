/**
 * Whether this scheduler takes part: shares in the partitions and may decide about models. Invariant: one that reaches no
 * gateway, or no worker while there are some, holds nothing, because whatever it held would be served by nobody. Those who
 * lose their neighbours keep what they have for a while: a process that died is gone from the membership soon.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Member } from '@paceline/protocol';

export interface Neighbours {
  readonly gateways: number;
  readonly workers: number;
}

export interface StandingOptions {
  readonly clock: Clock;
  /** How long neighbours may be out of reach before everything is given up, milliseconds; longer than a dead one stays a member. */
  readonly graceMs: number;
  /** How many are connected now. */
  readonly connected: () => Neighbours;
  readonly onChange: (takesPart: boolean) => void;
}

export class Standing {
  #takesPart = false;
  /** Those that membership names and that stay. */
  #named: Neighbours = { gateways: 0, workers: 0 };
  #alone: Timer | undefined;
  #closed = false;

  constructor(private readonly options: StandingOptions) {}

  get takesPart(): boolean {
    return this.#takesPart;
  }

  setMembers(members: readonly Member[]): void {
    const count = (of: Member['role']): number => members.filter(({ role, draining }) => role === of && !draining).length;
    this.#named = { gateways: count('gateway'), workers: count('worker') };
    this.look();
  }

  /** What is out of reach although it is there; undefined = nothing. */
  get missing(): 'gateway' | 'worker' | undefined {
    const { gateways, workers } = this.options.connected();
    if (gateways === 0 && this.#named.gateways > 0) return 'gateway';
    return workers === 0 && this.#named.workers > 0 ? 'worker' : undefined;
  }

  /** A connection came or went. */
  look(): void {
    const { clock, graceMs, connected } = this.options;
    if (this.#closed) return;
    if (this.missing === undefined) {
      this.#stopWaiting();
      if (connected().gateways > 0) this.#set(true);
    } else if (!this.#takesPart) {
      this.#stopWaiting();
    } else {
      this.#alone ??= clock.setTimer(graceMs * 1000, () => {
        this.#alone = undefined;
        this.#set(false);
      });
    }
  }

  /** From now on nothing changes any more. */
  close(): void {
    this.#closed = true;
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
