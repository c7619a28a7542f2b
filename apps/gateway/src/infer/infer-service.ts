/**
 * Stop 2 of the request path: every client protocol hands its decoded request here and gets its reply here.
 * Resolves the model, validates, admits, enqueues, and holds the request until it has answered it. Invariant: each call
 * that was accepted gets exactly one final frame, unless its client left; what is refused here never reaches a lane.
 */
import type { Clock, Timer } from '@paceline/clock';
import { readParameters, requestPrefix } from '@paceline/core';
import { ServingError, type Envelope, type InferRequest, type ModelCatalog, type ReplyFrame, type ServedModel } from '@paceline/protocol';
import type { RequestQueue } from '@paceline/streams';
import type { Span, StatisticsRegistry, Tracing } from '@paceline/telemetry';
import { AdmissionGate, type AdmissionLimits, type LaneLoad } from './admission-gate.js';
import { classifyOutputs, planClassification } from './class-outputs.js';
import { countRefusal } from './count-refusal.js';
import { Deadlines } from './deadlines.js';
import { countFailure } from './failure-reason.js';
import { beginInferSpan, endAbandoned, endAnswered, endRefused } from './infer-span.js';
import { ModelRoute } from './model-route.js';
import { PendingRequest } from './pending-request.js';
import { overdueError, type TimeLimit } from './time-limit.js';

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
   * @param limit a shorter time than the server's for this request
   * @throws ServingError when the request is refused before it was enqueued; `onReply` is then never called.
   */
  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void, limit?: TimeLimit): InferCall;
  /**
   * Asks, before a request is decoded, whether any to that model would be refused whatever it says.
   * @returns the error to answer it with, which is counted; undefined = its contents decide
   */
  precheck?(model: ServedModel): ServingError | undefined;
}

export interface InferServiceOptions {
  /** Identity of this gateway process: 16 random hex digits, fresh at every start. */
  readonly gateway: string;
  readonly catalog: ModelCatalog;
  readonly queue: RequestQueue;
  readonly statistics: StatisticsRegistry;
  readonly clock: Clock;
  readonly limits?: Partial<InferLimits>;
  /** What lanes in other processes say of their queues; called once per load of a model version. */
  readonly loadOf?: (model: ServedModel) => LaneLoad;
  /** Where spans go; without it there are none. */
  readonly tracing?: Tracing | undefined;
}

export interface InferLimits extends AdmissionLimits {
  /** From admission to the final frame; then the client gets DEADLINE_EXCEEDED. */
  readonly requestTimeoutUs: number;
}

export const DEFAULT_INFER_LIMITS: InferLimits = {
  maxUnanswered: 20_000,
  maxUnansweredPerModel: 10_000,
  maxUnansweredBytes: 1024 * 1024 * 1024,
  requestTimeoutUs: 60_000_000,
};

/** Of the message of a request whose id is not known. */
const NO_PREFIX = requestPrefix('');

export class InferService implements InferHandler {
  readonly #options: InferServiceOptions;
  readonly #clock: Clock;
  readonly #requestTimeoutUs: number;
  readonly #gate: AdmissionGate;
  readonly #routes = new WeakMap<ServedModel, ModelRoute>();
  /** By number. */
  readonly #pending = new Map<number, PendingRequest>();
  #lastNumber = 0;
  /** Number of the request that is being enqueued, whose frames must wait until `infer` has returned. */
  #enqueueing = 0;
  readonly #deadlines = new Deadlines<PendingRequest>();
  /** Armed for `#sweepUs`, which is no later than the first deadline. */
  #sweep: Timer | undefined;
  #sweepUs = Infinity;
  #draining = false;
  #onIdle: (() => void)[] = [];

  constructor(options: InferServiceOptions) {
    const limits = { ...DEFAULT_INFER_LIMITS, ...options.limits };
    this.#options = options;
    this.#clock = options.clock;
    this.#requestTimeoutUs = limits.requestTimeoutUs;
    this.#gate = new AdmissionGate(limits);
  }

  /** Requests accepted so far. */
  get accepted(): number {
    return this.#lastNumber;
  }

  /** Requests accepted and not yet answered. */
  get unanswered(): number {
    return this.#pending.size;
  }

  precheck(model: ServedModel): ServingError | undefined {
    const route = this.#routeOf(model);
    const refused = this.#draining ? stopping() : this.#gate.check(route, NO_PREFIX);
    if (refused !== undefined) countRefusal(route.statistics, refused);
    return refused;
  }

  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void, limit?: TimeLimit): InferCall {
    const { tracing } = this.#options;
    let refuser = this.#options.statistics.unknownModel;
    const nowUs = this.#clock.nowUs();
    const span = tracing && beginInferSpan(tracing, request, nowUs);
    try {
      const model = this.#options.catalog.resolve(request.modelName, request.modelVersion);
      const route = this.#routeOf(model);
      refuser = route.statistics;
      if (this.#draining) throw stopping();
      return this.#accept(request, model, route, { nowUs, span }, onReply, limit);
    } catch (thrown) {
      // Anything else is a bug, which whoever answers the client counts.
      if (thrown instanceof ServingError) countRefusal(refuser, thrown);
      if (span) endRefused(span, thrown, this.#clock.nowUs());
      throw thrown;
    }
  }

  #accept(
    request: InferRequest,
    model: ServedModel,
    route: ModelRoute,
    { nowUs, span }: { readonly nowUs: number; readonly span: Span | undefined },
    onReply: (frame: ReplyFrame) => void,
    clientLimit: TimeLimit | undefined,
  ): InferCall {
    const serverDueUs = nowUs + this.#requestTimeoutUs;
    const limit = clientLimit && clientLimit.dueUs < serverDueUs ? clientLimit : undefined;
    if (limit && limit.dueUs <= nowUs) throw overdueError({ clientId: request.id, model, limit }, this.#requestTimeoutUs);
    const classes = planClassification(request, model);
    const { priority, timeoutUs } = readParameters(request.parameters);
    const { rows, shapeKey, inputs, outputs } = route.signature.validate(request);
    let bytes = 0;
    for (const input of inputs) bytes += input.data.length;
    this.#gate.admit(bytes, route, requestPrefix(request.id));

    const number = ++this.#lastNumber;
    const dueUs = limit?.dueUs ?? serverDueUs;
    const accepted = { number, clientId: request.id, model, route, acceptedUs: nowUs, dueUs, limit, bytes, rows, classes, span };
    const pending = new PendingRequest(accepted, onReply, this);
    this.#pending.set(number, pending);
    this.#deadlines.add(pending);
    route.order?.open(pending);
    if (dueUs < this.#sweepUs) this.#armSweep(dueUs, nowUs);
    this.#enqueueing = number;
    try {
      const envelope: Envelope = {
        ref: { gateway: this.#options.gateway, number },
        model: model.name,
        version: model.version,
        clientId: request.id,
        rows,
        priority,
        timeoutUs,
        remainingUs: dueUs - nowUs,
        shapeKey,
        inputs,
        outputs,
      };
      this.#options.queue.enqueue(span === undefined ? envelope : { ...envelope, traceParent: span.traceParent });
    } catch (error) {
      this.#forget(pending);
      pending.close();
      throw error;
    } finally {
      this.#enqueueing = 0;
    }
    route.statistics.openFlight(bytes);
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
    const { classes } = pending.accepted;
    const answer = frame.ok && classes !== undefined ? classifyOutputs(frame, classes, pending.model) : frame;
    if (answer.final) this.#end(pending, answer);
    pending.deliver(answer);
  }

  #end(pending: PendingRequest, answer: ReplyFrame): void {
    const { route, acceptedUs, bytes, span } = pending.accepted;
    const nowUs = this.#clock.nowUs();
    const totalUs = nowUs - acceptedUs;
    if (span) endAnswered(span, pending.accepted, answer, nowUs);
    this.#forget(pending);
    route.statistics.closeFlight(bytes);
    if (answer.ok) {
      route.statistics.recordSuccess(totalUs * 1000);
      route.observe(totalUs);
    } else countFailure(route.statistics, answer.error, totalUs * 1000);
  }

  /** Called by a {@link PendingRequest} whose client left. */
  abandon(pending: PendingRequest): void {
    if (!this.#pending.has(pending.number)) return;
    this.#cancelQueued(pending);
    this.#forget(pending);
    const { route, acceptedUs, bytes, span } = pending.accepted;
    const nowUs = this.#clock.nowUs();
    if (span) endAbandoned(span, pending.accepted, nowUs);
    route.statistics.closeFlight(bytes);
    route.statistics.recordFailure('CANCELED', (nowUs - acceptedUs) * 1000, 'client_left');
  }

  /** Refuses new requests from now on; resolves when every accepted one has been answered, expired or cancelled. */
  drain(): Promise<void> {
    this.#draining = true;
    if (this.#pending.size > 0) return new Promise((resolve) => this.#onIdle.push(resolve));
    this.#disarmSweep();
    return Promise.resolve();
  }

  #routeOf(model: ServedModel): ModelRoute {
    let route = this.#routes.get(model);
    if (route === undefined) {
      route = new ModelRoute(model, this.#options.statistics, this.#options.loadOf?.(model));
      this.#routes.set(model, route);
    }
    return route;
  }

  #cancelQueued(pending: PendingRequest): void {
    this.#options.queue.cancel({ gateway: this.#options.gateway, number: pending.number }, pending.model.name, pending.model.version);
  }

  #forget(pending: PendingRequest): void {
    this.#pending.delete(pending.number);
    this.#deadlines.remove(pending);
    this.#options.queue.forget({ gateway: this.#options.gateway, number: pending.number });
    this.#gate.release(pending.accepted.bytes);
    if (this.#pending.size > 0 || !this.#draining) return;
    this.#disarmSweep();
    const waiting = this.#onIdle;
    this.#onIdle = [];
    for (const resolve of waiting) resolve();
  }

  /** One timer for all. It stays armed when the request it was set for is answered: most are, long before. */
  #armSweep(dueUs: number, nowUs: number): void {
    this.#sweep?.cancel();
    this.#sweepUs = dueUs;
    this.#sweep = this.#clock.setTimer(dueUs - nowUs, () => this.#expire());
  }

  #disarmSweep(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
    this.#sweepUs = Infinity;
  }

  #expire(): void {
    this.#sweep = undefined;
    this.#sweepUs = Infinity;
    const nowUs = this.#clock.nowUs();
    for (let next = this.#deadlines.first; next !== undefined && next.dueUs <= nowUs; next = this.#deadlines.first) {
      const frame: ReplyFrame = { ok: false, final: true, error: overdueError(next.accepted, this.#requestTimeoutUs) };
      this.#cancelQueued(next);
      this.#end(next, frame);
      next.expire(frame);
    }
    const { first } = this.#deadlines;
    if (first !== undefined && first.dueUs < this.#sweepUs) this.#armSweep(first.dueUs, nowUs);
  }
}

function stopping(): ServingError {
  return new ServingError('UNAVAILABLE', 'Server is stopping and accepts no new requests', { reason: 'draining', retryAfterMs: 1000 });
}
