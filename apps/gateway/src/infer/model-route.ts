/** What the infer service keeps per loaded model version, made at its first request and gone with the version. */
import { batchPolicyOf, compileSignature, type Signature } from '@paceline/core';
import type { ServedModel } from '@paceline/protocol';
import type { ModelStatistics, StatisticsRegistry } from '@paceline/telemetry';
import type { Admitted, LaneLoad } from './admission-gate.js';
import { ReplyOrder } from './reply-order.js';

export class ModelRoute implements Admitted {
  readonly name: string;
  readonly signature: Signature;
  readonly statistics: ModelStatistics;
  /** Where replies must leave in the order of their requests. */
  readonly order: ReplyOrder | undefined;
  readonly maxQueued: number;
  readonly #load: LaneLoad | undefined;
  #answerUs = 0;

  /** @param load of a lane in another process; without it the lane counts in the same statistics */
  constructor(model: ServedModel, statistics: StatisticsRegistry, load?: LaneLoad) {
    const policy = batchPolicyOf(model.config);
    this.name = model.name;
    this.#load = load;
    this.signature = compileSignature(model);
    this.statistics = statistics.forVersion(model.name, model.version);
    this.order = policy.preserveOrdering ? new ReplyOrder() : undefined;
    // With several levels it is the level that is full or not, and which one it is stands inside the request.
    this.maxQueued = policy.levels === 1 ? (policy.queueByLevel.get(1) ?? policy.defaultQueue).maxQueueSize : Infinity;
  }

  get unanswered(): number {
    return this.statistics.inFlight;
  }

  get queued(): number {
    return this.#load === undefined ? this.statistics.pendingRequests : this.#load.queued;
  }

  get expectedWaitUs(): number {
    return this.#load === undefined ? 0 : this.#load.expectedWaitUs;
  }

  get answerUs(): number {
    return this.#answerUs;
  }

  /** A request was answered after `totalUs`. */
  observe(totalUs: number): void {
    this.#answerUs += (totalUs - this.#answerUs) / 16;
  }
}
