/**
 * A scheduler of a cluster over its ports: joins leases, partitions, workers, placement and what gateways are told. Owns
 * the order of its end: leases go back at once, so that others serve the queues while running batches are waited for.
 */
import type { Clock } from '@paceline/clock';
import type { DesiredState, Leases } from '@paceline/cluster-state';
import { partitionOf } from '@paceline/core';
import type { GatewayMessage, Member } from '@paceline/protocol';
import type { RequestIntake, SchedulerLinkListener, SchedulerLinks } from '@paceline/streams';
import type { Logger, StatisticsRegistry, Tracing, VersionMemory } from '@paceline/telemetry';
import type { ConnectWorker } from '@paceline/worker-rpc';
import { LeaseKeeper, type AcquiredLease } from '../partitions/lease-keeper.js';
import { PartitionOwner, type IntakeReader } from '../partitions/partition-owner.js';
import { PressureReport } from '../partitions/pressure-report.js';
import { PlacementOwner } from '../placement/cluster/placement-owner.js';
import type { PlacementOptions } from '../placement/cluster/placement-ports.js';
import type { ModelEventListener } from '../placement/model-events.js';
import type { ModelSource } from '../placement/model-source.js';
import { WorkerRegistry } from '../workers/worker-registry.js';
import { Standing } from './standing.js';
import { StatisticsReport } from './statistics-report.js';

export interface ClusterSchedulerPorts {
  readonly clock: Clock;
  readonly leases: Leases;
  readonly desired: DesiredState;
  readonly source: ModelSource;
  readonly connectWorker: ConnectWorker;
  readonly read: (lease: AcquiredLease, intake: RequestIntake) => IntakeReader;
  readonly statistics: StatisticsRegistry;
  /** Where spans go; without it there are none. */
  readonly tracing?: Tracing | undefined;
  readonly logger: Logger;
  readonly onModelEvent?: ModelEventListener;
  /** This scheduler begins to take part, or takes part no longer: it reaches no gateway, or no worker. */
  readonly onStanding?: (takesPart: boolean) => void;
}

export interface ClusterSchedulerOptions {
  readonly placement: PlacementOptions;
  readonly queueTimeoutUs: number;
  /** After so long without a connection to any gateway, or to any worker, that is there it leaves partitions and models to others. */
  readonly outOfReachMs: number;
}

export class ClusterScheduler implements SchedulerLinkListener {
  readonly workers: WorkerRegistry;
  readonly partitions: PartitionOwner;
  readonly leases: LeaseKeeper;
  readonly placement: PlacementOwner;
  readonly standing: Standing;
  readonly #pressure: PressureReport;
  readonly #statistics: StatisticsReport;
  #links: SchedulerLinks | undefined;

  constructor(
    private readonly ports: ClusterSchedulerPorts,
    { placement, queueTimeoutUs, outOfReachMs }: ClusterSchedulerOptions,
  ) {
    const { clock, leases, desired, source, statistics, logger, onModelEvent } = ports;
    const { partitions, scheduler: self, leaseTtlMs: ttlMs } = placement;
    const links: Pick<SchedulerLinks, 'send' | 'tell' | 'broadcast' | 'gateways'> = {
      send: (ref, frame) => this.#links?.send(ref, frame),
      tell: (gateway, message) => this.#links?.tell(gateway, message),
      broadcast: (message) => this.#links?.broadcast(message),
      get gateways() {
        return owner()?.gateways ?? [];
      },
    };
    const owner = (): SchedulerLinks | undefined => this.#links;
    this.placement = new PlacementOwner(
      {
        clock,
        leases,
        desired,
        source,
        links,
        logger,
        statistics,
        worker: (id) => this.workers.dialled(id),
        ...(onModelEvent && { onModelEvent }),
      },
      placement,
    );
    this.workers = new WorkerRegistry(
      clock,
      ports.connectWorker,
      {
        onLoadChanged: (load) => this.partitions.onLoadChanged(load),
        onWorkerUp: (remote, hello) => {
          this.partitions.onWorkerUp(remote, hello);
          this.standing.look();
        },
        onWorkerLost: (worker) => {
          this.partitions.onWorkerLost(worker);
          this.standing.look();
        },
        onAnswersInDoubt: (gateway, requests) => links.tell(gateway, { kind: 'lost', requests }),
      },
      this.placement.fleet,
    );
    this.partitions = new PartitionOwner({
      clock,
      links,
      statistics,
      queueTimeoutUs,
      tracing: ports.tracing,
      workers: this.workers,
      keeper: () => this.leases,
      read: ports.read,
      homeOf: ({ model, version, spec }) => spec.partition ?? partitionOf(model, version, partitions),
      onChange: (partition, { number }, what) => logger.info({ partition, epoch: number }, `partition ${what.replace('_', ' ')}`),
    });
    this.leases = new LeaseKeeper({ leases, clock, self, partitions, ttlMs, listener: this.partitions });
    this.standing = new Standing({
      clock,
      graceMs: outOfReachMs,
      connected: () => ({ gateways: links.gateways.length, workers: this.workers.connectedCount }),
      onChange: (takesPart) => this.#setTakingPart(takesPart),
    });
    this.leases.setTakingPart(false);
    this.placement.setTakingPart(false);
    this.#pressure = new PressureReport({ clock, pressures: () => this.partitions.pressures(), broadcast: links.broadcast });
    const memory = (): Iterable<VersionMemory> => this.placement.fleet.memory();
    this.#statistics = new StatisticsReport({ clock, statistics, memory, self, broadcast: links.broadcast, tell: links.tell });
  }

  /** @param links to gateways, which this listens to */
  start(links: SchedulerLinks): void {
    this.#links = links;
    this.#pressure.start();
    this.#statistics.start();
    this.placement.start();
  }

  /** What a beat of this process has read. */
  onMembers(members: readonly Member[]): void {
    this.#links?.setMembers(members);
    this.standing.setMembers(members);
    this.workers.setMembers(members);
    this.placement.onBeat(members);
    this.leases.setSchedulers(members.filter(({ role, draining }) => role === 'scheduler' && !draining).map(({ id }) => id));
  }

  onGatewayUp(gateway: string): void {
    this.standing.look();
    this.partitions.onGatewayUp(gateway);
    this.placement.onGatewayUp(gateway);
    this.#statistics.onGatewayUp(gateway);
  }

  onGatewayDown(gateway: string): void {
    this.standing.look();
    this.placement.onGatewayDown(gateway);
  }

  onGatewayMessage(gateway: string, message: GatewayMessage): void {
    if (message.kind === 'cancel') this.partitions.onCancel(gateway, message);
    else if (message.kind === 'overtaken') this.partitions.onOvertaken(message.partition, message.epoch);
    else this.placement.onGatewayMessage(gateway, message);
  }

  /** Batches that are with workers. */
  get unfinished(): number {
    return this.workers.flights.size;
  }

  /**
   * Gives up every lease, waits for what runs, and leaves the workers.
   * @returns how many batches had not ended when `limitMs` was over; their requests are answered by workers and gateways
   */
  async stop(limitMs: number): Promise<number> {
    this.standing.close();
    this.#pressure.stop();
    await Promise.all([this.leases.stop(), this.placement.stop()]);
    await this.#flightsEnded(limitMs);
    this.#statistics.stop();
    this.#statistics.report();
    const left = this.unfinished;
    await this.workers.close();
    return left;
  }

  #setTakingPart(takesPart: boolean): void {
    const { logger, onStanding } = this.ports;
    if (!takesPart)
      logger.error(`no ${this.standing.missing ?? 'gateway'} can be reached: partitions and models are left to other schedulers`);
    this.leases.setTakingPart(takesPart);
    this.placement.setTakingPart(takesPart);
    onStanding?.(takesPart);
  }

  async #flightsEnded(limitMs: number): Promise<void> {
    const { flights } = this.workers;
    if (flights.size === 0) return;
    await new Promise<void>((resolve) => {
      const limit = this.ports.clock.setTimer(limitMs * 1000, resolve);
      flights.onIdle = () => {
        limit.cancel();
        resolve();
      };
    });
  }
}
