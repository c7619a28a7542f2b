/**
 * Holds the leases of this scheduler's partitions: tries for those it ought to have, renews them well before they end,
 * and gives up what is beyond its share, one at a time. Invariant: a lease counts as held only until a moment by this
 * process's monotonic clock that lies before the one at which another may have it, counted from the sending of the last
 * renewal that succeeded. The same path serves start, failover, and a Redis that lost its data.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Leases } from '@paceline/cluster-state';
import { shareOf } from '@paceline/core';
import type { Epoch } from '@paceline/protocol';

export interface AcquiredLease {
  readonly partition: number;
  readonly epoch: Epoch;
  /** Where the previous owner stopped reading. */
  readonly cursor: string;
}

/** - `given_up`: for a fairer share, or at the end; - `contested`: a worker knows a higher epoch; - the others as they say. */
export type LeaseEnd = 'expired' | 'taken' | 'contested' | 'given_up';

export interface LeaseListener {
  onAcquired(lease: AcquiredLease): void;
  /** It is over: nothing may be decided for it any more. Awaited before another may have it, where it is given up. */
  onEnded(partition: number, epoch: Epoch, why: LeaseEnd): Promise<void>;
}

export interface LeaseKeeperOptions {
  readonly leases: Leases;
  readonly clock: Clock;
  /** Random id of this process. */
  readonly self: string;
  readonly partitions: number;
  readonly ttlMs: number;
  readonly listener: LeaseListener;
}

interface Held {
  readonly epoch: Epoch;
  /** Until then, by this process's clock, the lease is ours. */
  untilUs: number;
  /** When the last renewal was sent that has been answered, or the acquisition. */
  renewedUs: number;
  renewing: boolean;
}

/** Parts of its lifetime: a look at all leases, a renewal, and what is left unused for what is under way at its end. */
const TICKS = 12;
const RENEWALS = 3;
const MARGIN = 0.1;
/** Looks without another try for a share after leases were found lost: every owner first takes back its own. */
const HEALING_TICKS = 8;

export class LeaseKeeper {
  readonly #held = new Map<number, Held>();
  /** The highest epoch number that somebody told of, by partition. */
  readonly #above = new Map<number, number>();
  readonly #ttlUs: number;
  #schedulers: readonly string[] | undefined;
  #timer: Timer | undefined;
  #acquiring = false;
  #givingUp = false;
  #healing = 0;
  #stopped = false;
  #takesPart = true;
  /** Leases that ended otherwise than by giving them up. */
  losses = 0;

  constructor(private readonly options: LeaseKeeperOptions) {
    this.#ttlUs = options.ttlMs * 1000;
  }

  /** Partitions that are held now. */
  get held(): readonly number[] {
    const nowUs = this.options.clock.nowUs();
    return [...this.#held].filter(([, { untilUs }]) => nowUs < untilUs).map(([partition]) => partition);
  }

  /** Whether that epoch may still decide. */
  isValid(partition: number, epoch: Epoch): boolean {
    const held = this.#held.get(partition);
    return held?.epoch === epoch && this.options.clock.nowUs() < held.untilUs;
  }

  /** Who takes part, as membership says. The first call begins the work. */
  setSchedulers(ids: readonly string[]): void {
    const fewer = this.#schedulers?.some((id) => !ids.includes(id)) ?? false;
    this.#schedulers = ids;
    if (this.#stopped) return;
    // Whoever is missing may have died, or Redis has forgotten everybody: our own leases tell.
    if (fewer) {
      this.#healing = Math.max(this.#healing, 1);
      for (const partition of this.#held.keys()) void this.#renew(partition);
    }
    this.#timer ??= this.options.clock.setTimer(0, () => this.#tick());
  }

  /** @param takesPart false = everything is given up, and nothing more is tried for */
  setTakingPart(takesPart: boolean): void {
    this.#takesPart = takesPart;
    if (!takesPart) for (const partition of this.#held.keys()) void this.#giveUp(partition);
  }

  /** Somebody knows that epoch: what is acquired from now on is above it. */
  noteEpoch(partition: number, number: number): void {
    if (number > (this.#above.get(partition) ?? 0)) this.#above.set(partition, number);
  }

  /** A worker or a gateway believes another epoch than the one that is held: it is given up for one above. */
  async contest(partition: number, epoch: Epoch): Promise<void> {
    if (this.#held.get(partition)?.epoch !== epoch) return;
    await this.#end(partition, 'contested');
    if (!this.#idle) await this.#acquire(partition);
  }

  /** Gives everything up so that others may have it at once. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await Promise.all([...this.#held.keys()].map((partition) => this.#giveUp(partition)));
  }

  /** Nothing is to be acquired. */
  get #idle(): boolean {
    return this.#stopped || !this.#takesPart;
  }

  #tick(): void {
    const { clock } = this.options;
    this.#timer = clock.setTimer(this.#ttlUs / TICKS, () => this.#tick());
    const nowUs = clock.nowUs();
    for (const [partition, held] of this.#held) {
      if (nowUs >= held.untilUs) void this.#end(partition, 'expired');
      else if (nowUs - held.renewedUs >= this.#ttlUs / RENEWALS) void this.#renew(partition);
    }
    if (this.#healing > 0) this.#healing -= 1;
    else void this.#balance();
  }

  async #renew(partition: number): Promise<void> {
    const { clock, leases, self, ttlMs } = this.options;
    const held = this.#held.get(partition);
    if (!held || held.renewing) return;
    held.renewing = true;
    const sentUs = clock.nowUs();
    // A renewal that fails leaves the lease to its end: Redis may be back before.
    const renewed = await leases.renew(nameOf(partition), self, ttlMs).catch(() => undefined);
    held.renewing = false;
    if (this.#held.get(partition) !== held) return;
    if (renewed === true) {
      held.renewedUs = sentUs;
      held.untilUs = this.#validUntilUs(sentUs);
      return;
    }
    if (renewed === undefined) return;
    // Nobody else can have had it before its end, so the store has lost it: take it back above what is known.
    const inTime = clock.nowUs() < held.untilUs;
    if (inTime) this.#healing = HEALING_TICKS;
    this.noteEpoch(partition, held.epoch.number);
    await this.#end(partition, 'taken');
    if (inTime && !this.#idle) await this.#acquire(partition);
  }

  async #balance(): Promise<void> {
    if (this.#idle || this.#acquiring || this.#givingUp || !this.#schedulers) return;
    const { self, partitions } = this.options;
    const share = shareOf({ self, schedulers: this.#schedulers, partitions, held: [...this.#held.keys()] });
    if (share.surplus !== undefined) {
      this.#givingUp = true;
      await this.#giveUp(share.surplus);
      this.#givingUp = false;
    } else if (share.wanted > 0) {
      this.#acquiring = true;
      let { wanted } = share;
      for (const partition of share.candidates) {
        if (wanted === 0 || this.#idle) break;
        if (await this.#acquire(partition)) wanted -= 1;
      }
      this.#acquiring = false;
    }
  }

  /** @returns whether it is held now */
  async #acquire(partition: number): Promise<boolean> {
    const { clock, leases, listener, self, ttlMs } = this.options;
    if (this.#held.has(partition)) return true;
    const sentUs = clock.nowUs();
    const acquired = await leases.acquire(nameOf(partition), self, ttlMs, this.#above.get(partition) ?? 0).catch(() => undefined);
    if (!acquired?.ok || this.#held.has(partition)) return false;
    const { epoch, cursor } = acquired;
    this.noteEpoch(partition, epoch.number);
    const untilUs = this.#validUntilUs(sentUs);
    if (this.#idle || clock.nowUs() >= untilUs) {
      await leases.release(nameOf(partition), self).catch(() => undefined);
      return false;
    }
    this.#held.set(partition, { epoch, untilUs, renewedUs: sentUs, renewing: false });
    listener.onAcquired({ partition, epoch, cursor });
    return true;
  }

  async #giveUp(partition: number): Promise<void> {
    await this.#end(partition, 'given_up');
    // What Redis does not hear now ends by itself.
    await this.options.leases.release(nameOf(partition), this.options.self).catch(() => undefined);
  }

  async #end(partition: number, why: LeaseEnd): Promise<void> {
    const held = this.#held.get(partition);
    if (!held) return;
    this.#held.delete(partition);
    if (why !== 'given_up') this.losses += 1;
    await this.options.listener.onEnded(partition, held.epoch, why);
  }

  #validUntilUs(sentUs: number): number {
    return sentUs + this.#ttlUs * (1 - MARGIN);
  }
}

function nameOf(partition: number): string {
  return `p${partition}`;
}
