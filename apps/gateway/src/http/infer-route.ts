/**
 * The infer route as a function over bytes: (model, version, a few headers, body) → one reply. It knows no framework and is
 * mounted on Fastify and on bare sockets alike. Invariant: `done` is called exactly once, unless the client left.
 */
import { systemClock, type Clock } from '@paceline/clock';
import type { InferRequest, ModelCatalog, ReplyFrame, ServedModel } from '@paceline/protocol';
import { ServingError, toServingError } from '@paceline/protocol';
import type { Logger, StatisticsRegistry } from '@paceline/telemetry';
import type { AccessLog } from '../access-log/access-log.js';
import { AccessRecord, CLIENT_LEFT } from '../access-log/access-record.js';
import type { Grant } from '../access/grant.js';
import { BUDGET_ABOVE_BYTES, type ByteBudget } from '../infer/byte-budget.js';
import { countRefusal } from '../infer/count-refusal.js';
import type { InferCall, InferHandler } from '../infer/infer-service.js';
import { replyTimings, wantsTimings } from '../infer/reply-timings.js';
import { limitOfHeader, type TimeLimit } from '../infer/time-limit.js';
import { compressBody, inflateBody, negotiate, UnsupportedCodingError } from './content-coding.js';
import { decodeJsonBody } from './decode-body.js';
import type { DecodedInfer, InferTarget } from './infer-json.js';
import { decodeRaw } from './infer-raw.js';
import { errorReply, inferReply, type HttpReply } from './infer-reply.js';
import { splitBody } from './split-body.js';

/** Where a request comes from, for the access log. */
export interface InferOrigin {
  readonly model: string;
  /** "" = not in the path. */
  readonly version: string;
  /** Address and port of the client; absent where nobody logs it. */
  readonly peer?: string | undefined;
  /** The header of that name. */
  readonly traceparent?: string | undefined;
}

export interface InferHttpRequest extends InferOrigin {
  /** Header values as sent; undefined = absent. */
  readonly inferenceHeaderLength: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly acceptEncoding: string | undefined;
  readonly requestTimeout: string | undefined;
  /** Kept as long as the request runs: binary inputs are views of it. */
  readonly body: Buffer;
  /** What the caller may use up; undefined = no limits. */
  readonly grant?: Grant | undefined;
}

export interface InferRouteOptions {
  readonly inferHandler: InferHandler;
  readonly catalog: ModelCatalog;
  /** Largest body, also after decompression, in bytes. */
  readonly maxInputBytes: number;
  /** Most that a body may grow by when it is inflated; 0 or absent = any factor. */
  readonly maxDecompressionRatio?: number;
  /** Counts what bodies become when they are inflated; unlimited without it. */
  readonly budget?: ByteBudget;
  /** For the time that clients grant; the machine's without it. */
  readonly clock?: Clock;
  readonly logger: Logger;
  /** Where refusals are counted. */
  readonly statistics?: StatisticsRegistry;
  readonly accessLog?: AccessLog;
  /** Requests have spans, so what traces clients are in matters. */
  readonly traced?: boolean;
  /** Decodes large JSON bodies elsewhere; without it they are decoded here. */
  readonly offload?: JsonOffload;
}

/** Decodes JSON bodies off the main thread. */
export interface JsonOffload {
  /** JSON parts of at least this many bytes go there. */
  readonly minBytes: number;
  /** @param hasTail whether the client sent an Inference-Header-Content-Length; nothing lies behind the JSON */
  decode(json: Buffer, hasTail: boolean, target: InferTarget): Promise<DecodedInfer>;
}

/** Tells the route that the client left; idempotent. */
export type CancelInfer = () => void;

const NOTHING_RUNS: CancelInfer = () => undefined;

const CODING_HINT = [['Accept-Encoding', 'gzip, deflate']] as const;

/** HTTP has no status for a client that left; logs have this one. */
const STATUS_CLIENT_LEFT = 499;

function recordOf(
  { accessLog }: InferRouteOptions,
  { peer = '', traceparent, model, version }: InferOrigin,
  bytesIn: number,
): AccessRecord | undefined {
  return accessLog && new AccessRecord(accessLog, { protocol: 'http', peer, traceparent, model, version, bytesIn });
}

/** @param model undefined where it is not known */
function countRefusalOf({ statistics }: InferRouteOptions, model: ServedModel | undefined, error: ServingError): void {
  if (!statistics) return;
  countRefusal(model ? statistics.forVersion(model.name, model.version) : statistics.unknownModel, error);
}

/** @throws ServingError UNIMPLEMENTED where a request may have several responses or none */
function requireSingleResponse({ config }: ServedModel): void {
  if (config.modelTransactionPolicy?.decoupled)
    throw new ServingError('UNIMPLEMENTED', "HTTP end point doesn't support models with decoupled transaction policy", {
      reason: 'decoupled_over_http',
    });
}

/** Bytes of the body of a reply. */
function replyBytes({ text, chunks }: HttpReply): number {
  return chunks.reduce((bytes, chunk) => bytes + chunk.length, Buffer.byteLength(text));
}

export class InferRoute {
  constructor(private readonly options: InferRouteOptions) {}

  /** Whether somebody reads where requests come from. */
  get logsAccess(): boolean {
    return this.options.accessLog !== undefined;
  }

  /** Notes a request that was refused before it came here. @param origin without a model where its head was not read */
  noteRefusal(error: ServingError, reply: HttpReply, origin: InferOrigin, bytesIn: number): void {
    const { statistics } = this.options;
    if (statistics) countRefusal(statistics.unknownModel, error);
    recordOf(this.options, origin, bytesIn)?.end(reply.status, replyBytes(reply), error);
  }

  /**
   * Refuses a request whose body has not come yet where the body does not matter: the model is not there, or is full.
   * @returns the reply, which is counted and noted; undefined = read the body and {@link handle} it
   */
  refuseUnread(origin: InferOrigin): HttpReply | undefined {
    const { catalog, inferHandler } = this.options;
    let model: ServedModel | undefined;
    let error: ServingError | undefined;
    try {
      model = catalog.resolve(origin.model, origin.version);
      requireSingleResponse(model);
      error = inferHandler.precheck?.(model);
    } catch (thrown) {
      error = toServingError(thrown);
      if (error !== thrown) return undefined; // a bug: told when the request is handled
    }
    if (error === undefined) return undefined;
    countRefusalOf(this.options, model, error);
    const reply = errorReply(error);
    recordOf(this.options, origin, 0)?.end(reply.status, replyBytes(reply), error);
    return reply;
  }

  /** @param done may be called before this returns. Never throws. */
  handle(request: InferHttpRequest, done: (reply: HttpReply) => void): CancelInfer {
    return new RunningInfer(this.options, request, done).start();
  }
}

class RunningInfer {
  readonly #record: AccessRecord | undefined;
  #model: ServedModel | undefined;
  #call: InferCall | undefined;
  #timed = false;
  /** Answered, or the client left. */
  #settled = false;
  #limit: TimeLimit | undefined;
  /** What the inflated body takes of the byte budget. */
  #reservedBytes = 0;

  constructor(
    private readonly options: InferRouteOptions,
    private readonly request: InferHttpRequest,
    private readonly done: (reply: HttpReply) => void,
  ) {
    this.#record = recordOf(options, request, request.body.length);
  }

  start(): CancelInfer {
    const { catalog, inferHandler, maxInputBytes, maxDecompressionRatio, clock = systemClock } = this.options;
    const { model: name, version, contentEncoding, requestTimeout, body } = this.request;
    try {
      if (requestTimeout !== undefined) this.#limit = limitOfHeader(requestTimeout, clock.nowUs());
      const model = catalog.resolve(name, version);
      this.#model = model;
      requireSingleResponse(model);
      const refused = inferHandler.precheck?.(model);
      if (refused !== undefined) {
        this.#fail(refused);
        return NOTHING_RUNS;
      }
      const plain = contentEncoding === undefined ? body : inflateBody(body, contentEncoding, maxInputBytes, maxDecompressionRatio);
      if (plain instanceof Promise) this.#await(plain.then((inflated) => this.#takeInflated(model, inflated)));
      else if (plain === body) this.#decode(model, body);
      else this.#takeInflated(model, plain);
    } catch (error) {
      this.#fail(error);
    }
    return () => this.#leave();
  }

  #takeInflated(model: ServedModel, body: Buffer): void {
    if (this.#settled) return;
    const { budget } = this.options;
    if (budget !== undefined && body.length > BUDGET_ABOVE_BYTES) {
      if (!budget.reserve(body.length)) throw budget.refusal(body.length);
      this.#reservedBytes = body.length;
    }
    this.#decode(model, body);
  }

  #decode(model: ServedModel, body: Buffer): void {
    if (this.#settled) return;
    const { model: name, version, inferenceHeaderLength } = this.request;
    const target: InferTarget = { model: name, version };
    const { json, tail } = splitBody(body, inferenceHeaderLength);
    const { offload } = this.options;
    // An empty body without the header is a raw request of zero bytes, as in Triton.
    if (json.length === 0) this.#run(decodeRaw(body, model, target));
    else if (offload !== undefined && json.length >= offload.minBytes && json.length === body.length) {
      this.#await(offload.decode(json, tail !== undefined, target).then((decoded) => this.#run(decoded)));
    } else this.#run(decodeJsonBody(json, tail, target));
  }

  #run(decoded: DecodedInfer): void {
    if (this.#settled) return;
    const { form } = decoded;
    const request = this.#inTrace(decoded.request);
    this.#record?.identify(request.id);
    this.#timed = wantsTimings(request.parameters);
    const { inferHandler, catalog } = this.options;
    const handler = this.request.grant?.meter(inferHandler, catalog) ?? inferHandler;
    this.#call = handler.infer(request, (frame) => this.#onFrame(frame, request.id, form), this.#limit);
    this.#record?.accepted(this.#call);
  }

  #inTrace(request: InferRequest): InferRequest {
    const { traceparent } = this.request;
    return this.options.traced && traceparent !== undefined ? { ...request, traceParent: traceparent } : request;
  }

  #onFrame(frame: ReplyFrame, id: string, form: DecodedInfer['form']): void {
    const call = this.#call;
    if (this.#settled || call === undefined) return;
    this.#record?.frame(frame);
    try {
      if (!frame.ok) throw frame.error;
      if (!frame.final) {
        call.cancel();
        throw new ServingError('INTERNAL', 'expected a single response, got more', { reason: 'several_responses' });
      }
      const timings = this.#timed && frame.timings ? replyTimings(frame.timings) : undefined;
      this.#send(inferReply(call.model, id, frame.outputs, form, timings));
    } catch (error) {
      this.#fail(error);
    }
  }

  #send(reply: HttpReply): void {
    const { acceptEncoding } = this.request;
    const coding = acceptEncoding === undefined ? 'identity' : negotiate(acceptEncoding);
    if (coding === 'identity') {
      this.#finish(reply);
      return;
    }
    const body = Buffer.concat([Buffer.from(reply.text), ...reply.chunks]);
    compressBody(body, coding, (error, compressed) => {
      if (this.#settled) return;
      if (error) this.#finish(reply);
      else
        this.#finish({ status: reply.status, headers: [...reply.headers, ['Content-Encoding', coding]], text: '', chunks: [compressed] });
    });
  }

  #fail(thrown: unknown): void {
    if (this.#settled) return;
    const error = toServingError(thrown);
    if (error !== thrown)
      this.options.logger.error({ err: thrown, model: this.request.model }, 'inference request failed on an unexpected error');
    if (this.#call === undefined) countRefusalOf(this.options, this.#model, error);
    this.#finish(errorReply(error, error instanceof UnsupportedCodingError ? CODING_HINT : undefined), error);
  }

  #finish(reply: HttpReply, error?: ServingError): void {
    this.#settle();
    this.done(reply);
    this.#record?.end(reply.status, replyBytes(reply), error);
  }

  #settle(): void {
    this.#settled = true;
    if (this.#reservedBytes > 0) this.options.budget?.release(this.#reservedBytes);
  }

  #await(work: Promise<void>): void {
    work.catch((error: unknown) => this.#fail(error));
  }

  #leave(): void {
    if (this.#settled) return;
    this.#settle();
    this.#call?.cancel();
    this.#record?.end(STATUS_CLIENT_LEFT, 0, CLIENT_LEFT);
  }
}
