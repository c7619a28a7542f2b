/**
 * The access-log line of one request in the making: opened by a front end when the request is there, ended by it when the
 * reply is. Without an access log there is none, and nothing of this costs anything.
 */
import { ServingError, type ReplyFrame, type StageTimings } from '@paceline/protocol';
import type { InferCall } from '../infer/infer-service.js';
import type { AccessLog } from './access-log.js';
import { readTraceContext } from './trace-context.js';

/** What is known of a request when it arrives. */
export interface Arrival {
  readonly protocol: 'http' | 'grpc';
  readonly peer: string;
  readonly traceparent: string | undefined;
  /** As the client named them; "" = not. */
  readonly model: string;
  readonly version: string;
  readonly bytesIn: number;
}

export class AccessRecord {
  readonly #beganUs: number;
  #id = '';
  #call: InferCall | undefined;
  #timings: StageTimings | undefined;
  #ended = false;

  constructor(
    private readonly log: AccessLog,
    private readonly arrival: Arrival,
  ) {
    this.#beganUs = log.clock.nowUs();
  }

  /** The request was accepted. */
  accepted(call: InferCall): void {
    this.#call = call;
  }

  /** The client's id is known. */
  identify(id: string): void {
    this.#id = id;
  }

  frame(frame: ReplyFrame): void {
    if (frame.ok && frame.timings) this.#timings = frame.timings;
  }

  /** Writes the line; only the first end counts. @param error undefined for a success */
  end(status: number, bytesOut: number, error: ServingError | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    const { log, arrival } = this;
    const call = this.#call;
    log.write({
      endedMs: log.clock.wallMs(),
      protocol: arrival.protocol,
      peer: arrival.peer,
      number: call?.number,
      id: this.#id,
      model: arrival.model,
      version: call?.model.version ?? arrival.version,
      status,
      reason: error?.reason,
      rows: call?.rows,
      bytesIn: arrival.bytesIn,
      bytesOut,
      totalUs: log.clock.nowUs() - this.#beganUs,
      timings: this.#timings,
      trace: readTraceContext(arrival.traceparent),
    });
  }
}

/** The reason of a request whose client left before its reply. */
export const CLIENT_LEFT = new ServingError('CANCELLED', 'the client left', { reason: 'client_left' });
