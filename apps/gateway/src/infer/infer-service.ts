/**
 * Stop 2 of the request path: every client protocol hands its decoded request here and gets its reply here.
 * Resolves the model, validates, admits, enqueues, and holds the request until it has answered it. Invariant: each call
 * that was accepted gets exactly one final frame, unless its client left; what is refused here never reaches a lane.
 */
import type { Clock, Timer } from '@paceline/clock';
import { compileSignature, readParameters, requestPrefix, type Signature } from '@paceline/core';
import { ServingError, type InferRequest, type ModelCatalog, type ReplyFrame, type ServedModel } from '@paceline/protocol';
import type { RequestQueue } from '@paceline/streams';
import type { ModelStatistics, StatisticsRegistry } from '@paceline/telemetry';
import { AdmissionGate, type AdmissionLimits } from './admission-gate.js';
import { classifyOutputs, planClassification } from './class-outputs.js';
import { countRefusal } from './count-refusal.js';
import { countFailure } from './failure-reason.js';
import { PendingRequest } from './pending-request.js';
import { ReplyOrder } from './reply-order.js';

/** A request under way. */
export interface InferCall {
  /** The model version that answers. */
  readonly model: ServedModel;
  /** Counted from 1 by this gateway. */
  readonly number: number;
  /** Rows of its inputs; 1 where the model does not batch. */
  readonly rows: number;
  /** The client left: no more frames are delivered, queued work is dropped. Idempotent; no-op once final. */
  cancel(): void;
}

export interface InferHandler {
  /**
   * Validates, enqueues and delivers frames to `onReply` (never before this returns, exactly one `final`).
   * @throws ServingError when the request is refused before it was enqueued; `onReply` is then never called.
   */
  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void): InferCall;
}

export interface InferServiceOptions {
  /** Identity of this gateway process: 16 random hex digits, fresh at every start. */
  readonly gateway: string;
  readonly catalog: ModelCatalog;
  readonly queue: RequestQueue;
  readonly statistics: StatisticsRegistry;
  readonly clock: Clock;
  readonly limits?: Partial<InferLimits>;
}

export interface InferLimits extends AdmissionLimits {
  /** From admission to the final frame; then the client gets DEADLINE_EXCEEDED. */
  readonly requestTimeoutUs: number;
}

export const DEFAULT_INFER_LIMITS: InferLimits = {
  maxUnanswered: 20_000,
  maxUnansweredBytes: 1024 * 1024 * 1024,
  requestTimeoutUs: 60_000_000,
};

/** What is kept per loaded model version. */
interface Route {
  readonly signature: Signature;
  readonly statistics: ModelStatistics;
  readonly order: ReplyOrder | undefined;
}

export class InferService implements InferHandler {
  readonly #options: InferServiceOptions;
  readonly #clock: Clock;
  readonly #requestTimeoutUs: number;
  readonly #gate: AdmissionGate;
  readonly #routes = new WeakMap<ServedModel, Route>();
  /** By number, which is also the order of their deadlines: all requests have the same timeout. */
  readonly #pending = new Map<number, PendingRequest>();
  #lastNumber = 0;
  /** Number of the request that is being enqueued, whose frames must wait until `infer` has returned. */
  #enqueueing = 0;
  #sweep: Timer | undefined;
  #draining = false;
  #onIdle: (() => void)[] = [];

  constructor(options: InferServiceOptions) {
    const limits = { ...DEFAULT_INFER_LIMITS, ...options.limits };
    this.#options = options;
    this.#clock = options.clock;
    this.#requestTimeoutUs = limits.requestTimeoutUs;
    this.#gate = new AdmissionGate(limits);
  }

  /** Requests accepted and not yet answered. */
  get unanswered(): number {
    return this.#pending.size;
  }

  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void): InferCall {
    let refuser = this.#options.statistics.unknownModel;
    try {
      const nowUs = this.#clock.nowUs();
      const model = this.#options.catalog.resolve(request.modelName, request.modelVersion);
      const route = this.#routeOf(model);
      refuser = route.statistics;
      if (this.#draining)
        throw new ServingError('UNAVAILABLE', 'Server is stopping and accepts no new requests', { reason: 'draining', retryAfterMs: 1000 });
      return this.#accept(request, model, route, nowUs, onReply);
    } catch (thrown) {
      // Anything else is a bug, which whoever answers the client counts.
      if (thrown instanceof ServingError) countRefusal(refuser, thrown);
      throw thrown;
    }
  }

  #accept(request: InferRequest, model: ServedModel, route: Route, nowUs: number, onReply: (frame: ReplyFrame) => void): InferCall {
    const classes = planClassification(request, model);
    const { priority, timeoutUs } = readParameters(request.parameters);
    const { rows, shapeKey, inputs, outputs } = route.signature.validate(request);
    let bytes = 0;
    for (const input of inputs) bytes += input.data.length;
    this.#gate.admit(bytes, requestPrefix(request.id));

    const number = ++this.#lastNumber;
    const { statistics, order } = route;
    const pending = new PendingRequest(number, request.id, model, statistics, nowUs, bytes, rows, classes, onReply, order, this);
    this.#pending.set(number, pending);
    order?.open(pending);
    this.#sweep ??= this.#clock.setTimer(this.#requestTimeoutUs, () => this.#expire());
    this.#enqueueing = number;
    try {
      this.#options.queue.enqueue({
        ref: { gateway: this.#options.gateway, number },
        model: model.name,
        version: model.version,
        clientId: request.id,
        rows,
        priority,
        timeoutUs,
        shapeKey,
        inputs,
        outputs,
      });
    } catch (error) {
      this.#forget(pending);
      pending.close();
      throw error;
    } finally {
      this.#enqueueing = 0;
    }
    statistics.openFlight(bytes);
    return pending;
  }

  /** Where the reply channel delivers. Frames for requests that are answered, expired or cancelled are dropped. */
  onFrame(number: number, frame: ReplyFrame): void {
    const pending = this.#pending.get(number);
    if (pending === undefined) return;
    if (number === this.#enqueueing) {
      queueMicrotask(() => this.onFrame(number, frame));
      return;
    }
    const answer = frame.ok && pending.classes !== undefined ? classifyOutputs(frame, pending.classes, pending.model) : frame;
    if (answer.final) {
      const totalUs = this.#clock.nowUs() - pending.acceptedUs;
      const { statistics } = pending;
      this.#forget(pending);
      statistics.closeFlight(pending.bytes);
      if (answer.ok) {
        statistics.recordSuccess(totalUs * 1000);
        this.#gate.observe(totalUs);
      } else countFailure(statistics, answer.error, totalUs * 1000);
    }
    pending.deliver(answer);
  }

  /** Called by a {@link PendingRequest} whose client left. */
  abandon(pending: PendingRequest): void {
    if (!this.#pending.has(pending.number)) return;
    this.#forget(pending);
    pending.statistics.closeFlight(pending.bytes);
    pending.statistics.recordFailure('CANCELED', (this.#clock.nowUs() - pending.acceptedUs) * 1000, 'client_left');
    this.#cancelQueued(pending);
  }

  /** Refuses new requests from now on; resolves when every accepted one has been answered, expired or cancelled. */
  drain(): Promise<void> {
    this.#draining = true;
    if (this.#pending.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  #routeOf(model: ServedModel): Route {
    let route = this.#routes.get(model);
    if (route === undefined) {
      const { schedulingChoice } = model.config;
      const ordered = schedulingChoice.case === 'dynamicBatching' && schedulingChoice.value.preserveOrdering;
      route = {
        signature: compileSignature(model),
        statistics: this.#options.statistics.forVersion(model.name, model.version),
        order: ordered ? new ReplyOrder() : undefined,
      };
      this.#routes.set(model, route);
    }
    return route;
  }

  #cancelQueued(pending: PendingRequest): void {
    this.#options.queue.cancel({ gateway: this.#options.gateway, number: pending.number }, pending.model.name, pending.model.version);
  }

  #forget(pending: PendingRequest): void {
    this.#pending.delete(pending.number);
    this.#gate.release(pending.bytes);
    if (this.#pending.size > 0 || !this.#draining) return;
    this.#sweep?.cancel();
    this.#sweep = undefined;
    const waiting = this.#onIdle;
    this.#onIdle = [];
    for (const resolve of waiting) resolve();
  }

  /** One timer for all: it is set for the oldest request and finds the next oldest when it fires. */
  #expire(): void {
    this.#sweep = undefined;
    const nowUs = this.#clock.nowUs();
    for (const pending of this.#pending.values()) {
      const leftUs = pending.acceptedUs + this.#requestTimeoutUs - nowUs;
      if (leftUs > 0) {
        this.#sweep = this.#clock.setTimer(leftUs, () => this.#expire());
        return;
      }
      this.#cancelQueued(pending);
      const text = `${requestPrefix(pending.clientId)}request to model '${pending.model.name}' version ${pending.model.version} was not answered within ${this.#requestTimeoutUs / 1e6} s`;
      this.onFrame(pending.number, {
        ok: false,
        final: true,
        error: new ServingError('DEADLINE_EXCEEDED', text, { reason: 'request_timeout' }),
      });
    }
  }
}
