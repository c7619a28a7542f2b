/**
 * What this scheduler does with the partitions whose leases it holds. Taking one over is one path for start, failover,
 * rolling restart and a Redis that lost its data: ask all workers what is running, then tell all gateways, who send again
 * whatever is unanswered. Invariant: no gateway is told before the workers have been asked and an earlier reader of the
 * same partition has stopped, so what is sent again is neither run twice nor read by nobody.
 */
import type { Clock } from '@paceline/clock';
import { isCurrentEpoch, type Epoch, type GatewayMessage, type LanePressure } from '@paceline/protocol';
import type { RequestIntake, SchedulerLinks } from '@paceline/streams';
import type { StatisticsRegistry, Tracing } from '@paceline/telemetry';
import type { RemoteWorker, WorkerHello } from '@paceline/worker-rpc';
import { BatchIds } from '../dispatch/dispatcher.js';
import type { Load } from '../workers/loads.js';
import type { WorkerRegistry } from '../workers/worker-registry.js';
import { SeenRequests } from '../intake/seen-requests.js';
import { Claims } from './claims.js';
import { HeldPartition } from './held-partition.js';
import type { AcquiredLease, LeaseEnd, LeaseKeeper, LeaseListener } from './lease-keeper.js';

export type Cancel = GatewayMessage & { readonly kind: 'cancel' };

/** Reads the stream of one partition into an intake until it is stopped. */
export interface IntakeReader {
  /** Resolves once nothing more is read and the cursor is where the next owner begins. Never rejects. */
  stop(): Promise<void>;
}

export interface PartitionOwnerPorts {
  readonly clock: Clock;
  readonly workers: WorkerRegistry;
  readonly links: Pick<SchedulerLinks, 'send' | 'tell' | 'broadcast'>;
  readonly statistics: StatisticsRegistry;
  readonly queueTimeoutUs: number;
  readonly tracing?: Tracing | undefined;
  /** The leases; given as a function because the two know each other. */
  readonly keeper: () => LeaseKeeper;
  /** Starts to read where the previous owner stopped. */
  readonly read: (lease: AcquiredLease, intake: RequestIntake) => IntakeReader;
  /** The partition that takes the requests of a load. */
  readonly homeOf: (load: Load) => number;
  /** For the log. */
  readonly onChange?: (partition: number, epoch: Epoch, what: 'owned' | LeaseEnd) => void;
}

/** Marks a cancelled request: no attempt of it is later. */
const EVERY_ATTEMPT = 255;

interface Owned {
  readonly held: HeldPartition;
  readonly claims: Claims;
  readonly reader: IntakeReader;
}

export class PartitionOwner implements LeaseListener {
  readonly #owned = new Map<number, Owned>();
  /** Partitions that are being taken over: workers are asked, nothing is read yet. */
  readonly #claiming = new Set<Claims>();
  readonly #cancelled = new SeenRequests();
  readonly #stopping = new Map<number, Promise<void>>();
  readonly #batchIds = new BatchIds();

  constructor(private readonly ports: PartitionOwnerPorts) {}

  /** Partitions whose requests are served here. */
  get owned(): readonly number[] {
    return [...this.#owned.keys()];
  }

  /** Requests that wait for a lane to open. */
  get unopened(): number {
    let sum = 0;
    for (const { held } of this.#owned.values()) sum += held.unopened;
    return sum;
  }

  onAcquired(lease: AcquiredLease): void {
    void this.#takeOver(lease);
  }

  onEnded(partition: number, epoch: Epoch, why: LeaseEnd): Promise<void> {
    const owned = this.#owned.get(partition);
    if (!owned || owned.held.epoch !== epoch) return this.#stopping.get(partition) ?? Promise.resolve();
    this.#owned.delete(partition);
    owned.held.abandon();
    const stopped = owned.reader.stop().then(() => {
      if (this.#stopping.get(partition) === stopped) this.#stopping.delete(partition);
      if (why === 'given_up') this.ports.links.broadcast({ kind: 'released', partition, epoch });
    });
    this.#stopping.set(partition, stopped);
    this.ports.onChange?.(partition, epoch, why);
    return stopped;
  }

  onGatewayUp(gateway: string): void {
    for (const [partition, { held }] of this.#owned) this.ports.links.tell(gateway, { kind: 'owns', partition, epoch: held.epoch });
  }

  /** The client of a request left. */
  onCancel(gateway: string, { number, model, version }: Cancel): void {
    const ref = { gateway, number };
    this.#cancelled.add(ref, EVERY_ATTEMPT);
    for (const { held } of this.#owned.values()) held.onCancel(ref, model, version);
  }

  /** A gateway goes by that epoch: one that does not reach it is given up for one above, or nothing would be sent again. */
  onOvertaken(partition: number, epoch: Epoch): void {
    const keeper = this.ports.keeper();
    keeper.noteEpoch(partition, epoch.number);
    const held = this.#owned.get(partition)?.held;
    if (held && !isCurrentEpoch(held.epoch, epoch)) void keeper.contest(partition, held.epoch);
  }

  onLoadChanged(load: Load): void {
    for (const { held } of this.#owned.values()) held.onLoadChanged(load);
  }

  onWorkerLost(worker: string): void {
    for (const { held } of [...this.#owned.values(), ...this.#claiming]) held.onWorkerLost(worker);
  }

  onWorkerUp(remote: RemoteWorker, hello: WorkerHello): void {
    const keeper = this.ports.keeper();
    for (const { partition, epoch } of hello.epochs) keeper.noteEpoch(partition, epoch.number);
    for (const { claims } of this.#owned.values()) void claims.ask(remote);
    for (const claims of this.#claiming) void claims.ask(remote);
  }

  *pressures(): Generator<LanePressure> {
    for (const { held } of this.#owned.values()) yield* held.pressures();
  }

  async #takeOver(lease: AcquiredLease): Promise<void> {
    const { partition, epoch } = lease;
    const keeper = this.ports.keeper();
    await this.#stopping.get(partition);
    const held = new HeldPartition(partition, epoch, {
      ...this.ports,
      batchIds: this.#batchIds,
      cancelled: this.#cancelled,
      replies: this.ports.links,
      isValid: () => keeper.isValid(partition, epoch),
      isHome: (load) => this.ports.homeOf(load) === partition,
      onStaleEpoch: () => void keeper.contest(partition, epoch),
    });
    const claims = new Claims(held, this.ports);
    this.#claiming.add(claims);
    await claims.askAll();
    this.#claiming.delete(claims);
    if (!keeper.isValid(partition, epoch)) return held.abandon();
    this.#owned.set(partition, { held, claims, reader: this.ports.read(lease, held.intake) });
    // Loads and workers may have changed while the claims were under way.
    for (const load of this.ports.workers.loads.all()) held.onLoadChanged(load);
    this.ports.links.broadcast({ kind: 'owns', partition, epoch });
    this.ports.onChange?.(partition, epoch, 'owned');
  }
}
