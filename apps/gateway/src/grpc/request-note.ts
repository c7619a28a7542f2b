/**
 * What is noted of one inference request that came by gRPC: its refusal in the counters, its end in the access log. It
 * knows how far the request has come, so that whoever answers says only how.
 */
import type { Metadata } from '@grpc/grpc-js';
import {
  ERROR_CODES,
  type InferRequest,
  type ReplyFrame,
  type ServedModel,
  type ServingError,
  type WireInferRequest,
} from '@paceline/protocol';
import type { StatisticsRegistry } from '@paceline/telemetry';
import type { AccessLog } from '../access-log/access-log.js';
import { AccessRecord, CLIENT_LEFT } from '../access-log/access-record.js';
import { countRefusal } from '../infer/count-refusal.js';
import type { InferCall } from '../infer/infer-service.js';

export interface NoteOptions {
  /** Where refusals are counted. */
  readonly statistics?: StatisticsRegistry;
  readonly accessLog?: AccessLog;
  /** Requests have spans, so what traces clients are in matters. */
  readonly traced?: boolean;
}

/** The call or stream a request came by. */
export interface RpcOrigin {
  getPeer(): string;
  readonly metadata: Metadata;
}

export class RequestNote {
  #record: AccessRecord | undefined;
  #model: ServedModel | undefined;
  #accepted = false;
  #bytesOut = 0;

  constructor(
    private readonly options: NoteOptions,
    private readonly origin: RpcOrigin,
    private readonly bytesIn: number,
  ) {}

  /** The message was read. */
  read(wire: WireInferRequest): void {
    if (!this.options.accessLog) return;
    this.#record = this.#open(wire.modelName, wire.modelVersion);
    this.#record?.identify(wire.id);
  }

  resolved(model: ServedModel): void {
    this.#model = model;
  }

  /** The request with what its client says of its trace. */
  inTrace(request: InferRequest): InferRequest {
    const traceParent = this.options.traced ? this.#traceParent() : undefined;
    return traceParent === undefined ? request : { ...request, traceParent };
  }

  accepted(call: InferCall): void {
    this.#accepted = true;
    this.#record?.accepted(call);
  }

  frame(frame: ReplyFrame): void {
    this.#record?.frame(frame);
  }

  /** A response of that many bytes was made. */
  sent(bytes: number): void {
    this.#bytesOut += bytes;
  }

  succeeded(): void {
    this.#record?.end(0, this.#bytesOut, undefined);
  }

  failed(error: ServingError): void {
    const { statistics } = this.options;
    const model = this.#model;
    if (!this.#accepted && statistics)
      countRefusal(model ? statistics.forVersion(model.name, model.version) : statistics.unknownModel, error);
    (this.#record ?? this.#open('', ''))?.end(ERROR_CODES[error.code], this.#bytesOut, error);
  }

  clientLeft(): void {
    this.#record?.end(ERROR_CODES.CANCELLED, 0, CLIENT_LEFT);
  }

  #open(model: string, version: string): AccessRecord | undefined {
    const { accessLog } = this.options;
    if (!accessLog) return undefined;
    return new AccessRecord(accessLog, {
      protocol: 'grpc',
      peer: this.origin.getPeer(),
      traceparent: this.#traceParent(),
      model,
      version,
      bytesIn: this.bytesIn,
    });
  }

  #traceParent(): string | undefined {
    const [value] = this.origin.metadata.get('traceparent');
    return typeof value === 'string' ? value : undefined;
  }
}
