/**
 * Has one scheduler of the cluster decide about models: the one that holds the lease `placement`. Invariant: a term runs
 * only while its lease is valid by the monotonic clock of this process, counted from when the last renewal that
 * succeeded was sent.
 */
import type { Timer } from '@paceline/clock';
import { toServingError, type Epoch, type GatewayMessage, type Member } from '@paceline/protocol';
import { DesiredModels } from './desired-models.js';
import type { PlacementOptions, PlacementPorts } from './placement-ports.js';
import { PlacementTerm } from './placement-term.js';
import { WorkerFleet } from './worker-fleet.js';

const LEASE = 'placement';
/** Renewals within the life of a lease. */
const RENEWALS = 3;

export class PlacementOwner {
  /** To be told of every event of every worker connection, whether or not this process decides. */
  readonly fleet = new WorkerFleet();
  readonly #wanted: DesiredModels;
  #term: PlacementTerm | undefined;
  #validUntilUs = -Infinity;
  /** The highest epoch number that is known. */
  #highest = 0;
  /** That of the last term here. */
  #last = 0;
  #members: readonly Member[] | undefined;
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #stopped = false;
  #takesPart = true;
  #stepping = false;

  constructor(
    private readonly ports: PlacementPorts,
    private readonly options: PlacementOptions,
  ) {
    this.#wanted = new DesiredModels(ports.desired, (error) =>
      ports.logger.warn({ err: error }, 'desired models not written; tried again'),
    );
  }

  /** Whether this process decides now. */
  get owns(): boolean {
    return this.#term !== undefined && this.#valid();
  }

  /** The term that runs here; undefined = another process decides, or nobody. */
  get term(): PlacementTerm | undefined {
    return this.#term;
  }

  /** Takes the lease as soon as it is free. */
  start(): void {
    void this.#step();
  }

  /** Gives the lease up at once. Loads stay as they are. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#giveUp('the scheduler stops');
  }

  /** @param takesPart false = the lease is given up, and not tried for */
  setTakingPart(takesPart: boolean): void {
    this.#takesPart = takesPart;
    if (!takesPart) void this.#giveUp('gateways or workers are out of reach');
    else if (this.#timer !== undefined && !this.#stepping) void this.#step();
  }

  /** What a beat of this process has read; once at least, and whenever it is different. */
  onBeat(members: readonly Member[]): void {
    this.#members = members;
    this.#term?.onMembers(members);
  }

  onGatewayUp(gateway: string): void {
    this.#term?.onGatewayUp(gateway);
  }

  onGatewayDown(gateway: string): void {
    this.#term?.onGatewayDown(gateway);
  }

  onGatewayMessage(gateway: string, message: GatewayMessage): void {
    if (message.kind === 'routed') this.#highest = Math.max(this.#highest, message.epoch.number);
    const above = this.#term?.onGatewayMessage(gateway, message);
    if (above !== undefined) void this.#rise(above);
  }

  #valid(): boolean {
    return this.ports.clock.nowUs() < this.#validUntilUs;
  }

  async #giveUp(reason: string): Promise<void> {
    const held = this.#term !== undefined;
    this.#end(reason);
    if (held) await this.ports.leases.release(LEASE, this.options.scheduler).catch(() => undefined);
  }

  async #step(): Promise<void> {
    this.#stepping = true;
    try {
      if (this.#term !== undefined) await this.#renew();
      else if (this.#takesPart) await this.#acquire();
    } catch (thrown) {
      this.ports.logger.warn({ err: toServingError(thrown) }, 'placement lease not reached');
    }
    this.#stepping = false;
    if (this.#stopped) return;
    this.#timer?.cancel();
    this.#timer = this.ports.clock.setTimer((1000 * this.options.leaseTtlMs) / RENEWALS, () => void this.#step());
  }

  async #acquire(): Promise<void> {
    const { clock, leases } = this.ports;
    const { leaseTtlMs, scheduler } = this.options;
    const sentUs = clock.nowUs();
    const acquired = await leases.acquire(LEASE, scheduler, leaseTtlMs, this.#highest);
    if (!acquired.ok || this.#term !== undefined) return;
    if (this.#stopped || !this.#takesPart) return leases.release(LEASE, scheduler);
    const { epoch, fresh } = acquired;
    // A store that has lost its data counts from what is known: then nobody else is known to have decided since.
    const continued = fresh ? this.#highest === this.#last : epoch.number === this.#last + 1;
    if (!continued) this.#wanted.forget();
    this.#highest = Math.max(this.#highest, epoch.number);
    this.#last = epoch.number;
    this.#extend(sentUs);
    if (!this.#valid()) return;
    const ports = { ...this.ports, fleet: this.fleet, wanted: this.#wanted, valid: () => this.#valid() };
    this.#term = new PlacementTerm(ports, this.options, { epoch, fresh, members: this.#members });
    this.ports.logger.info({ epoch: epoch.number, fresh }, 'this scheduler decides about models');
    void this.#term.run();
  }

  async #renew(): Promise<void> {
    const { clock, leases } = this.ports;
    const { leaseTtlMs, scheduler } = this.options;
    const sentUs = clock.nowUs();
    const term = this.#term;
    const held = await leases.renew(LEASE, scheduler, leaseTtlMs);
    if (this.#term !== term) return;
    if (held) {
      this.#extend(sentUs);
      if (this.#valid()) await this.#wanted.flush();
      else this.#end('the lease was renewed too late');
    } else {
      this.#end('the lease is lost');
      if (this.#takesPart) await this.#acquire();
    }
  }

  /** Acquires again, above an epoch that a gateway knows: the store has lost its data. */
  async #rise({ number }: Epoch): Promise<void> {
    this.#end(`a gateway goes by epoch ${number}`);
    await this.ports.leases.release(LEASE, this.options.scheduler).catch(() => undefined);
    if (!this.#stopped) await this.#step();
  }

  #extend(sentUs: number): void {
    this.#validUntilUs = sentUs + 1000 * this.options.leaseTtlMs;
    this.#expiry?.cancel();
    this.#expiry = this.ports.clock.setTimer(this.#validUntilUs - this.ports.clock.nowUs(), () => {
      if (!this.#valid()) this.#end('the lease could not be renewed in time');
    });
  }

  #end(reason: string): void {
    this.#expiry?.cancel();
    this.#validUntilUs = -Infinity;
    const term = this.#term;
    if (term === undefined) return;
    this.#term = undefined;
    term.end();
    this.ports.logger.info({ reason }, 'this scheduler decides about models no longer');
  }
}
