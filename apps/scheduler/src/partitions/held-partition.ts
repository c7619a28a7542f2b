/**
 * One partition under one epoch: its lanes, what waits for lanes, and the memory of what was handed over. Lanes open by
 * themselves from what workers announce. Invariant: it answers nobody once its lease is not valid any more; batches that
 * are with workers then end as they end, and whoever owns the partition next answers for the rest.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Envelope, Epoch, LanePressure, RequestRef } from '@paceline/protocol';
import type { ReplyChannel } from '@paceline/streams';
import type { StatisticsRegistry, Tracing } from '@paceline/telemetry';
import type { BatchCompletion, RunningRequest } from '@paceline/worker-rpc';
import { Lanes } from '../batching/lanes.js';
import type { BatchIds } from '../dispatch/dispatcher.js';
import { LaneIntake, type ClusterIntake } from '../intake/lane-intake.js';
import { RunningElsewhere } from '../intake/running-elsewhere.js';
import type { SeenRequests } from '../intake/seen-requests.js';
import { UnopenedLanes } from '../intake/unopened-lanes.js';
import type { Load } from '../workers/loads.js';
import type { FlightSender } from '../workers/remote-flights.js';
import type { WorkerRegistry } from '../workers/worker-registry.js';
import { LaneLoads } from './lane-loads.js';

export interface HeldPartitionPorts {
  readonly clock: Clock;
  readonly workers: WorkerRegistry;
  readonly replies: ReplyChannel;
  readonly statistics: StatisticsRegistry;
  readonly batchIds: BatchIds;
  readonly queueTimeoutUs: number;
  readonly tracing?: Tracing | undefined;
  /** See {@link ClusterIntake.cancelled}. */
  readonly cancelled: SeenRequests;
  /** Whether the lease is valid now. */
  readonly isValid: () => boolean;
  /** Whether this partition takes the requests of that load, as placement said. */
  readonly isHome: (load: Load) => boolean;
  readonly onStaleEpoch: () => void;
}

export class HeldPartition implements FlightSender {
  /** Takes the requests of the partition's stream. */
  readonly intake: LaneIntake;
  readonly #lanes: Lanes;
  readonly #unopened: UnopenedLanes;
  readonly #running: RunningElsewhere;
  readonly #loads: LaneLoads;
  /** Armed while anything is known of what workers have. */
  #runningEnds: Timer | undefined;
  #abandoned = false;

  constructor(
    readonly partition: number,
    readonly epoch: Epoch,
    private readonly ports: HeldPartitionPorts,
  ) {
    const { clock, workers, statistics, batchIds, queueTimeoutUs, tracing, isValid } = ports;
    const replies: ReplyChannel = {
      send(ref, frame) {
        if (isValid()) ports.replies.send(ref, frame);
      },
    };
    const link = workers.flights.linkOf(this);
    this.#lanes = new Lanes({ clock, link, replies, statistics, queueTimeoutUs, batchIds, tracing });
    this.#unopened = new UnopenedLanes(clock, replies);
    this.#running = new RunningElsewhere(clock);
    const cluster: ClusterIntake = {
      onUnopened: (envelope) => this.#wait(envelope),
      running: this.#running,
      cancelled: ports.cancelled,
    };
    this.intake = new LaneIntake(this.#lanes, replies, cluster);
    this.#loads = new LaneLoads({ clock, lanes: this.#lanes, workers, isHome: ports.isHome, onOpen: (load) => this.#flush(load) });
    for (const load of workers.loads.all()) this.#loads.sync(load, false);
  }

  /** Requests that wait for a lane to open. */
  get unopened(): number {
    return this.#unopened.size;
  }

  /** Something about a load has changed. */
  onLoadChanged(load: Load): void {
    if (!this.#abandoned) this.#loads.sync(load, this.#unopened.has(load.model, load.version));
  }

  onCancel(ref: RequestRef, model: string, version: string): void {
    if (!this.#unopened.cancel(ref, model, version)) this.intake.onCancel(ref, model, version);
  }

  /** See {@link LaneIntake.onRunning}. */
  onRunning(worker: string, requests: readonly RunningRequest[]): void {
    if (this.#abandoned || requests.length === 0) return;
    this.intake.onRunning(worker, requests);
    this.#awaitRunning();
  }

  /** What an earlier owner had there is lost with it. */
  onWorkerLost(worker: string): void {
    this.intake.onWorkerLost(worker);
  }

  onCompletion(completion: BatchCompletion): void {
    this.#lanes.onCompletion(completion);
  }

  onStaleEpoch(): void {
    this.ports.onStaleEpoch();
  }

  /** Of each lane. */
  *pressures(): Generator<LanePressure> {
    for (const lane of this.#lanes) yield lane.pressure();
  }

  /** The lease is over: what waits is dropped, nothing is sent any more. */
  abandon(): void {
    this.#abandoned = true;
    this.#runningEnds?.cancel();
    this.#running.clear();
    this.#loads.stop();
    this.#unopened.abandon();
    this.#lanes.abandon();
    this.ports.workers.flights.dropHomeless(this);
  }

  #awaitRunning(): void {
    const { clock, queueTimeoutUs } = this.ports;
    this.#runningEnds ??= clock.setTimer(queueTimeoutUs, () => {
      this.#runningEnds = undefined;
      if (this.#running.forget(queueTimeoutUs)) this.#awaitRunning();
    });
  }

  #wait(envelope: Envelope): void {
    if (this.#abandoned) return;
    this.#unopened.add(envelope);
    if (!this.#unopened.has(envelope.model, envelope.version)) return;
    const loads = [...this.ports.workers.loads.of(envelope.model, envelope.version)];
    for (const load of loads.sort((a, b) => b.generation - a.generation)) {
      this.#loads.sync(load, true);
      if (this.#lanes.find(envelope.model, envelope.version)) return;
    }
  }

  #flush({ model, version }: Load): void {
    const lane = this.#lanes.find(model, version);
    if (!lane) return;
    // Word that a worker has it may have come meanwhile, or it may have waited for too long.
    for (const envelope of this.#unopened.take(model, version))
      if (!this.#running.keep(envelope) && !(envelope.remainingUs === 0)) lane.enqueue(envelope);
  }
}
