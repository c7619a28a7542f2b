/** The words of one inference: what a client asked, what is queued, what comes back. */
import type { Tensor } from '@paceline/tensor';
import type { ServingError } from './error.js';

export type ParameterValue = string | bigint | number | boolean;
export type Parameters = Readonly<Record<string, ParameterValue>>;

/** A request as any client protocol states it, after decoding and before validation against a model. */
export interface InferRequest {
  readonly modelName: string;
  /** "" = the server picks (the highest ready version). */
  readonly modelVersion: string;
  /** The client's id, echoed; "" = none. */
  readonly id: string;
  readonly parameters: Parameters;
  readonly inputs: readonly Tensor[];
  /** Names of the outputs wanted, in order; undefined = all, in the order of the configuration. */
  readonly outputs: readonly RequestedOutput[] | undefined;
  /** W3C `traceparent` as the client sent it, right or wrong; absent = none. */
  readonly traceParent?: string;
}

export interface RequestedOutput {
  readonly name: string;
  /** > 0: answer with the top `classification` classes as BYTES instead of the tensor. */
  readonly classification: number;
}

/** Identity of a request inside Paceline: the gateway incarnation that holds it, and its number there. */
export interface RequestRef {
  /** Random 64 bits of one gateway process, as 16 hex digits. */
  readonly gateway: string;
  readonly number: number;
}

/** What a gateway hands to a lane. Tensors are canonical and already validated against the model's configuration. */
export interface Envelope {
  readonly ref: RequestRef;
  readonly model: string;
  /** Resolved: never "". */
  readonly version: string;
  /** The client's id, for messages only. */
  readonly clientId: string;
  /** Rows along the batch dimension; 1 for a model that does not batch. */
  readonly rows: number;
  /** Priority level as the client asked; 0 = the model's default. */
  readonly priority: number;
  /** Queue timeout as the client asked, microseconds; 0 = none asked. */
  readonly timeoutUs: number;
  /** Equal for requests that may share a batch; "" where every request of the model may. */
  readonly shapeKey: string;
  readonly inputs: readonly Tensor[];
  /** Names of the model outputs to compute and return, in order. */
  readonly outputs: readonly string[];
  /** How long its gateway will go on waiting for the answer, microseconds; nobody needs it later. Absent = for ever. */
  readonly remainingUs?: number;
  /** How often it was handed over, counted from 1; absent = 1. */
  readonly attempt?: number;
  /**
   * Present where the tensors' bytes stayed with the gateway, which happens between processes alone: how many there are.
   * `inputs` then have their names, datatypes and shapes, and empty `data`; whoever executes pulls the bytes.
   */
  readonly heldBytes?: number;
  /** W3C `traceparent` of the span that handed it over; absent = not traced. */
  readonly traceParent?: string;
}

/** A timeout after so much time; one that has run out is not 0, which would mean that none was asked for. */
export function timeoutAfter(timeoutUs: number, passedUs: number): number {
  return timeoutUs === 0 || passedUs <= 0 ? timeoutUs : Math.max(1, timeoutUs - passedUs);
}

/** A request that has waited somewhere for so long. */
export function envelopeAfter(envelope: Envelope, passedUs: number): Envelope {
  const { timeoutUs, remainingUs } = envelope;
  if (passedUs <= 0 || (timeoutUs === 0 && remainingUs === undefined)) return envelope;
  const aged = { ...envelope, timeoutUs: timeoutAfter(timeoutUs, passedUs) };
  return remainingUs === undefined ? aged : { ...aged, remainingUs: Math.max(0, remainingUs - passedUs) };
}

/** Where the time of a successful request went, in nanoseconds; the compute parts are those of its whole batch. */
export interface StageTimings {
  readonly queueNs: number;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
  /** Rows of the batch it ran in. */
  readonly batchRows: number;
}

/** One frame of a reply. Every request ends with exactly one frame whose `final` is true. */
export type ReplyFrame =
  | {
      readonly ok: true;
      readonly index: number;
      readonly final: boolean;
      readonly outputs: readonly Tensor[];
      readonly timings: StageTimings | undefined;
    }
  | { readonly ok: false; readonly final: true; readonly error: ServingError };
