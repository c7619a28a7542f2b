/**
 * Every lane of this scheduler: opens and drains them for placement, finds them for the intake, and takes the worker's
 * events. Invariant: a version has at most one lane that takes requests, the newest; older ones only wait for batches
 * that are with the worker.
 */
import type { Clock } from '@paceline/clock';
import { DEFAULT_QUEUE_TIMEOUT_US } from '@paceline/core';
import type { Envelope, RequestRef } from '@paceline/protocol';
import type { ReplyChannel } from '@paceline/streams';
import type { StatisticsRegistry, Tracing } from '@paceline/telemetry';
import type { BatchCompletion, InstanceEvent, RunningRequest, WorkerLink, WorkerListener } from '@paceline/worker-rpc';
import { Dispatcher, type BatchIds } from '../dispatch/dispatcher.js';
import type { LaneDirectory } from '../intake/lane-intake.js';
import type { LaneHost, LaneSpec } from '../placement/lane-host.js';
import { ModelLane } from './model-lane.js';

export interface LanesOptions {
  readonly clock: Clock;
  readonly link: WorkerLink;
  readonly replies: ReplyChannel;
  readonly statistics: StatisticsRegistry;
  /** Bound on queueing for requests without any other timeout, microseconds; default 60 s. */
  readonly queueTimeoutUs?: number;
  /** Where several of these share a worker; default numbers of its own. */
  readonly batchIds?: BatchIds;
  /** Where spans go; without it there are none. */
  readonly tracing?: Tracing | undefined;
}

interface VersionLanes {
  current: ModelLane | undefined;
  readonly older: Set<ModelLane>;
}

export class Lanes implements LaneHost, LaneDirectory, WorkerListener {
  readonly #dispatcher: Dispatcher;
  readonly #models = new Map<string, Map<string, VersionLanes>>();

  /** Does not register itself at the link: whoever joins the parts passes it (or a fan-out) to `setListener`. */
  constructor(private readonly options: LanesOptions) {
    this.#dispatcher = new Dispatcher(options.link, options.batchIds);
  }

  find(model: string, version: string): ModelLane | undefined {
    return this.#models.get(model)?.get(version)?.current;
  }

  cancel(ref: RequestRef, model: string, version: string): void {
    const lanes = this.#models.get(model)?.get(version);
    if (!lanes || lanes.current?.cancel(ref)) return;
    for (const lane of lanes.older) if (lane.cancel(ref)) return;
  }

  withdraw(request: RunningRequest): Envelope | undefined {
    for (const lane of this) {
      const envelope = lane.withdraw(request);
      if (envelope) return envelope;
    }
    return undefined;
  }

  open(spec: LaneSpec): void {
    const { clock, replies, statistics, queueTimeoutUs = DEFAULT_QUEUE_TIMEOUT_US, tracing } = this.options;
    let versions = this.#models.get(spec.model);
    if (!versions) this.#models.set(spec.model, (versions = new Map<string, VersionLanes>()));
    let lanes = versions.get(spec.version);
    if (!lanes) versions.set(spec.version, (lanes = { current: undefined, older: new Set() }));
    const previous = lanes.current;
    const ports = {
      clock,
      replies,
      dispatcher: this.#dispatcher,
      statistics: statistics.forVersion(spec.model, spec.version),
      queueTimeoutUs,
      tracing,
    };
    lanes.current = new ModelLane(spec, ports);
    if (!previous) return;
    lanes.older.add(previous);
    previous.handOver(lanes.current);
  }

  async drain(model: string, version: string, generation: number): Promise<void> {
    const versions = this.#models.get(model);
    const lanes = versions?.get(version);
    if (!versions || !lanes) return;
    const lane = this.#generation(lanes, generation);
    if (!lane) return;
    if (lane === lanes.current) lane.close();
    await lane.whenIdle();
    // A newer generation may have been opened meanwhile: remove this lane only.
    lanes.older.delete(lane);
    if (lanes.current === lane) lanes.current = undefined;
    if (!lanes.current && lanes.older.size === 0 && versions.get(version) === lanes) versions.delete(version);
    if (versions.size === 0 && this.#models.get(model) === versions) this.#models.delete(model);
  }

  /** Drains every lane: for the end of the server. What is waiting is executed first. */
  async drainAll(): Promise<void> {
    const drains = [...this].map(({ spec }) => this.drain(spec.model, spec.version, spec.generation));
    await Promise.all(drains);
  }

  /** Every lane; those that take requests first within each version. */
  *[Symbol.iterator](): Generator<ModelLane> {
    for (const versions of this.#models.values()) {
      for (const { current, older } of versions.values()) {
        if (current) yield current;
        yield* older;
      }
    }
  }

  /** Forgets every lane; see {@link ModelLane.abandon}. Completions of what is with workers still come here. */
  abandon(): void {
    for (const lane of this) lane.abandon();
    this.#models.clear();
  }

  onInstance(event: InstanceEvent): void {
    const lanes = this.#models.get(event.model)?.get(event.version);
    if (lanes) this.#generation(lanes, event.generation)?.onInstance(event);
  }

  onCompletion(completion: BatchCompletion): void {
    this.#dispatcher.onCompletion(completion);
  }

  #generation(lanes: VersionLanes, generation: number): ModelLane | undefined {
    if (lanes.current?.spec.generation === generation) return lanes.current;
    for (const lane of lanes.older) if (lane.spec.generation === generation) return lane;
    return undefined;
  }
}
