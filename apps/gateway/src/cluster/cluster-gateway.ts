/**
 * What a gateway makes of what it is told over its links: replies to the service that holds the requests, owners to the
 * queue that hands them over, routings to the catalog. Invariant: what an overtaken scheduler says about partitions or
 * models changes nothing; its refusals come as frames of requests that are still unanswered, and are as good as any.
 */
import type { Clock, Timer } from '@paceline/clock';
import {
  ServingError,
  type Epoch,
  type GatewayMessage,
  type ReplyFrame,
  type RequestAttempt,
  type Routing,
  type SchedulerMessage,
} from '@paceline/protocol';
import type { GatewayLinkListener, RequestQueue } from '@paceline/streams';
import { ClusterCounters, CountersReport, type Logger, type StatisticsRegistry } from '@paceline/telemetry';
import type { Tensor } from '@paceline/tensor';
import { LaneLoads } from './lane-loads.js';
import { PartitionOwners } from './partition-owners.js';
import { RemoteCatalog } from './remote-catalog.js';
import { RemoteControl } from './remote-control.js';

/** The queue between processes: it keeps what is unanswered, and hands it over again when its owner changes. */
export interface HandoverQueue extends RequestQueue {
  onOwner(partition: number, epoch: Epoch): void;
  onLost(number: number, attempt: number, started: boolean, error: ServingError): void;
  tensorsOf(number: number): readonly Tensor[] | undefined;
}

export interface ClusterGatewayOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly statistics: StatisticsRegistry;
  /** How long model control waits for a placement owner, milliseconds. */
  readonly ownerLimitMs: number;
  readonly tell: (scheduler: string, message: GatewayMessage) => void;
  readonly onSchedulerDown?: () => void;
}

/** What was counted is told no more often. */
const COUNTERS_INTERVAL_US = 1_000_000;

export class ClusterGateway implements GatewayLinkListener {
  readonly catalog: RemoteCatalog;
  readonly control: RemoteControl;
  readonly owners = new PartitionOwners();
  readonly loads: LaneLoads;
  readonly counters: ClusterCounters;
  readonly #report: CountersReport;
  readonly #options: ClusterGatewayOptions;
  #queue: HandoverQueue | undefined;
  #onFrame: ((number: number, frame: ReplyFrame) => void) | undefined;
  /** Who published the routing that holds, while it is connected. */
  #placementOwner: string | undefined;
  #timer: Timer | undefined;

  constructor(options: ClusterGatewayOptions) {
    this.#options = options;
    const { clock, statistics, tell, ownerLimitMs, logger } = options;
    this.loads = new LaneLoads(clock);
    this.counters = new ClusterCounters(statistics);
    this.#report = new CountersReport(statistics);
    this.catalog = new RemoteCatalog((model, version) => {
      this.loads.remove(model, version);
      this.counters.remove(model, version);
      statistics.remove(model, version);
    });
    this.control = new RemoteControl({
      catalog: this.catalog,
      clock,
      tell,
      ownerLimitMs,
      onProgress: ({ operation, model }, text) => logger.info({ operation, model }, text),
    });
  }

  /** Both are made with what this object offers; no link may be open before. */
  attach(queue: HandoverQueue, onFrame: (number: number, frame: ReplyFrame) => void): void {
    this.#queue = queue;
    this.#onFrame = onFrame;
    this.#armCounters();
  }

  onFrame(number: number, frame: ReplyFrame): void {
    this.#onFrame?.(number, frame);
  }

  onLost(number: number, attempt: number, started: boolean, error: ServingError): void {
    this.#queue?.onLost(number, attempt, started, error);
  }

  tensorsOf(number: number): readonly Tensor[] | undefined {
    return this.#queue?.tensorsOf(number);
  }

  onSchedulerUp(scheduler: string): void {
    this.#options.logger.info({ scheduler }, 'scheduler connected');
  }

  onSchedulerDown(scheduler: string): void {
    this.#options.logger.warn({ scheduler }, 'scheduler gone');
    this.#options.onSchedulerDown?.();
    this.owners.onSchedulerDown(scheduler);
    this.control.onSchedulerDown(scheduler);
    if (this.#placementOwner === scheduler) this.#placementOwner = undefined;
  }

  onSchedulerMessage(scheduler: string, message: SchedulerMessage): void {
    switch (message.kind) {
      case 'owns':
        this.#onOwns(scheduler, message.partition, message.epoch);
        return;
      case 'released':
        this.owners.released(scheduler, message.partition, message.epoch);
        return;
      case 'pressure':
        this.loads.onPressure(message.lanes);
        return;
      case 'routing':
        this.#onRouting(scheduler, message.routing);
        return;
      case 'statistics':
        this.counters.note(message.process, message.versions);
        return;
      case 'control-progress':
        this.control.onProgress(message.id, message.text);
        return;
      case 'control-result':
        this.control.onResult(message.id, message.error);
        return;
      case 'lost':
        this.#onAnswersLost(message.requests);
    }
  }

  close(): void {
    this.#timer?.cancel();
    this.loads.close();
    this.control.close();
  }

  #onOwns(scheduler: string, partition: number, epoch: Epoch): void {
    const above = this.owners.above(partition, epoch);
    if (above) this.#options.tell(scheduler, { kind: 'overtaken', partition, epoch: above });
    else if (this.owners.owns(scheduler, partition, epoch)) this.#queue?.onOwner(partition, epoch);
  }

  /** Those whose answers have come are unknown to the queue. */
  #onAnswersLost(requests: readonly RequestAttempt[]): void {
    const error = new ServingError('UNAVAILABLE', 'the worker that executed the request was lost before its answer had come', {
      reason: 'reply_lost',
      retryAfterMs: 1000,
    });
    for (const { number, attempt } of requests) this.#queue?.onLost(number, attempt, true, error);
  }

  #onRouting(scheduler: string, routing: Routing): void {
    const offered = this.catalog.offer(routing);
    // Of an older one its publisher learns what holds instead: it gives way, or acquires above it.
    const { epoch, generation } = this.catalog.routing ?? routing;
    this.#options.tell(scheduler, { kind: 'routed', epoch, generation });
    if (offered === 'old') return;
    if (this.#placementOwner !== scheduler) {
      this.#placementOwner = scheduler;
      // Who is new passes on nothing that was told before.
      this.#tellCounters(this.#report.all());
    }
    this.control.onOwner(scheduler, epoch.number);
    if (offered === 'taken') this.#options.logger.debug({ epoch: epoch.number, generation, models: routing.models.length }, 'routing');
  }

  #armCounters(): void {
    this.#timer = this.#options.clock.setTimer(COUNTERS_INTERVAL_US, () => {
      if (this.#placementOwner !== undefined) this.#tellCounters(this.#report.changed());
      this.#armCounters();
    });
  }

  #tellCounters(versions: ReturnType<CountersReport['all']>): void {
    if (this.#placementOwner !== undefined && versions.length > 0)
      this.#options.tell(this.#placementOwner, { kind: 'statistics', versions });
  }
}
