/**
 * Counters of one model version, with the meaning of Triton's statistics: plain numbers, added to on the hot path and
 * read by the statistics routes and the metrics endpoint. Durations are nanoseconds.
 * Who adds: the lane (queue, executions, stages), the gateway (a request's arrival and its end).
 *
 * Invariant, at every moment: `received` = successes + failures of `fail` + refusals + `inFlight`. A request that found its
 * queue full is a refusal and, as in Triton, a failure by reason REJECTED, but no failure of `fail`.
 */

import type { BatchingStatistics } from './batching-statistics.js';

/** Why a batch was released; the sum over reasons equals the execution count. */
export const RELEASE_REASONS = ['full', 'preferred', 'delay', 'shape', 'drain', 'isolated'] as const;
export type ReleaseReason = (typeof RELEASE_REASONS)[number];

/** Triton's failure reasons. REJECTED: queue full or timed out before it ran; BACKEND: the model failed. */
export const FAILURE_REASONS = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

export interface Duration {
  count: number;
  ns: number;
}

export interface StageDurations {
  readonly queueNs: number;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

export interface ExecutionRecord {
  readonly rows: number;
  readonly reason: ReleaseReason;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

export interface BatchSizeStatistics {
  readonly batchSize: number;
  readonly computeInput: Duration;
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
}

/** Told of each event as it happens, e.g. to fill histograms. */
export interface StatisticsObserver {
  onExecution(statistics: ModelStatistics, record: ExecutionRecord): void;
  onStages(statistics: ModelStatistics, stages: StageDurations): void;
  onSuccess(statistics: ModelStatistics, totalNs: number): void;
}

/** How many, by a stable lower_snake_case reason. */
export type CountsByReason = Map<string, number>;

const countOne = (counts: CountsByReason, reason: string): void => void counts.set(reason, (counts.get(reason) ?? 0) + 1);

const duration = (): Duration => ({ count: 0, ns: 0 });

function add(d: Duration, ns: number): void {
  d.count += 1;
  d.ns += ns;
}

export class ModelStatistics {
  readonly success = duration();
  readonly fail = duration();
  readonly failuresByReason: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  readonly queue = duration();
  readonly computeInput = duration();
  readonly computeInfer = duration();
  readonly computeOutput = duration();
  readonly executionsByReason: Record<ReleaseReason, number> = { full: 0, preferred: 0, delay: 0, shape: 0, drain: 0, isolated: 0 };
  readonly batchSizes = new Map<number, BatchSizeStatistics>();
  inferenceCount = 0;
  executionCount = 0;
  /** Requests that came, refused ones included. */
  received = 0;
  /** Accepted and not yet answered, with their input bytes. */
  inFlight = 0;
  inFlightBytes = 0;
  /** Never taken in: invalid, over a limit, or the queue was full. */
  readonly refusedByReason: CountsByReason = new Map();
  /** Taken in and not answered with a result; the sum is `fail.count`. */
  readonly failedByReason: CountsByReason = new Map();
  readonly restartsByReason: CountsByReason = new Map();
  /** Waiting for execution. */
  pendingRequests = 0;
  pendingRows = 0;
  lastInferenceMs = 0;
  loadDurationMs = 0;
  /** Of the lane that takes requests now; undefined before there was one. */
  batching: BatchingStatistics | undefined;

  constructor(
    readonly model: string,
    readonly version: string,
    private readonly observer?: StatisticsObserver,
  ) {}

  /** A batch ran to its end. */
  recordExecution(record: ExecutionRecord, wallMs: number): void {
    this.executionCount += 1;
    this.inferenceCount += record.rows;
    this.executionsByReason[record.reason] += 1;
    this.lastInferenceMs = wallMs;
    let size = this.batchSizes.get(record.rows);
    if (!size) {
      size = { batchSize: record.rows, computeInput: duration(), computeInfer: duration(), computeOutput: duration() };
      this.batchSizes.set(record.rows, size);
    }
    add(size.computeInput, record.computeInputNs);
    add(size.computeInfer, record.computeInferNs);
    add(size.computeOutput, record.computeOutputNs);
    this.observer?.onExecution(this, record);
  }

  /** One request of a batch that ran: its own time in the queue, and the stages of its whole batch. */
  recordStages(stages: StageDurations): void {
    add(this.queue, stages.queueNs);
    add(this.computeInput, stages.computeInputNs);
    add(this.computeInfer, stages.computeInferNs);
    add(this.computeOutput, stages.computeOutputNs);
    this.observer?.onStages(this, stages);
  }

  /** A request was answered with a result; `totalNs` from its admission to its reply. */
  recordSuccess(totalNs: number): void {
    add(this.success, totalNs);
    this.observer?.onSuccess(this, totalNs);
  }

  /** A request came and was accepted; one of the three `record` methods below ends it, and {@link closeFlight}. */
  openFlight(bytes: number): void {
    this.received += 1;
    this.inFlight += 1;
    this.inFlightBytes += bytes;
  }

  closeFlight(bytes: number): void {
    this.inFlight -= 1;
    this.inFlightBytes -= bytes;
  }

  /** An accepted request ended without a result. @param detail the stable reason of its error */
  recordFailure(reason: FailureReason, totalNs: number, detail: string): void {
    add(this.fail, totalNs);
    this.failuresByReason[reason] += 1;
    countOne(this.failedByReason, detail);
  }

  /** An accepted request found its queue full. */
  recordRejection(detail: string): void {
    this.failuresByReason.REJECTED += 1;
    countOne(this.refusedByReason, detail);
  }

  /** A request came and was refused before it was accepted. @param queueFull which Triton counts as a failure, too */
  recordRefusal(detail: string, queueFull = false): void {
    this.received += 1;
    if (queueFull) this.failuresByReason.REJECTED += 1;
    countOne(this.refusedByReason, detail);
  }

  /** An instance fell or was replaced. */
  recordRestart(reason: string): void {
    countOne(this.restartsByReason, reason);
  }
}

/** Memory of one instance, bytes. */
export interface InstanceMemoryReading {
  readonly model: string;
  readonly version: string;
  readonly instance: string;
  readonly residentBytes: number;
}

/** The statistics of every model version that is or was loaded and has not been removed. */
export class StatisticsRegistry {
  readonly #byKey = new Map<string, ModelStatistics>();
  observer: StatisticsObserver | undefined;
  /** What instances take now; set by whoever joins the worker. Costs no I/O. */
  instanceMemory: () => Iterable<InstanceMemoryReading> = () => [];
  /** Requests that were refused before their model was known. */
  readonly unknownModel = new ModelStatistics('', '');

  /** The statistics of that version, made on first use. */
  forVersion(model: string, version: string): ModelStatistics {
    const key = `${model}\u0000${version}`;
    let s = this.#byKey.get(key);
    if (!s) {
      s = new ModelStatistics(model, version, this.observer);
      this.#byKey.set(key, s);
    }
    return s;
  }

  find(model: string, version: string): ModelStatistics | undefined {
    return this.#byKey.get(`${model}\u0000${version}`);
  }

  /** Its series vanish with it. */
  remove(model: string, version: string): void {
    this.#byKey.delete(`${model}\u0000${version}`);
  }

  all(): IterableIterator<ModelStatistics> {
    return this.#byKey.values();
  }
}

/** What the statistics of the protocol are read from: this process's, or those of a whole cluster. */
export type StatisticsReader = Pick<StatisticsRegistry, 'instanceMemory'> & {
  find(model: string, version: string): ModelStatistics | undefined;
};
