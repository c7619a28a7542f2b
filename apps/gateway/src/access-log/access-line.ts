/**
 * One request as one line of JSON. Invariant: whatever a client sent, the line holds no line break, no control character
 * and at most {@link MAX_TEXT} characters of each of its texts.
 */
import type { StageTimings } from '@paceline/protocol';
import type { TraceContext } from './trace-context.js';

export interface AccessEntry {
  /** When it ended, milliseconds since the epoch. */
  readonly endedMs: number;
  readonly protocol: 'http' | 'grpc';
  /** Address and port of the client; "" = unknown. */
  readonly peer: string;
  /** Number given by this gateway; undefined for a request that was not accepted. */
  readonly number: number | undefined;
  /** The client's own; "" = none. */
  readonly id: string;
  readonly model: string;
  /** "" = none asked for and none found. */
  readonly version: string;
  /** HTTP status or gRPC status code; of a client that left 499 or 1. */
  readonly status: number;
  /** Stable reason of the error; undefined for a success. */
  readonly reason: string | undefined;
  readonly rows: number | undefined;
  /** Of the body or message as sent. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** From the last byte of the request to the end of its reply. */
  readonly totalUs: number;
  readonly timings: StageTimings | undefined;
  readonly trace: TraceContext | undefined;
}

/** Longer texts are cut in the log; nobody finds a request by its thousandth character. */
export const MAX_TEXT = 256;

const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
/** What JSON.stringify leaves alone and a terminal or a line reader does not. */
const UNSAFE = /[\u007f-\u009f\u2028\u2029]/g;

function quote(text: string): string {
  if (text.length <= MAX_TEXT && PLAIN.test(text)) return `"${text}"`;
  const cut = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  return JSON.stringify(cut).replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

let lastMs = -1;
let lastTime = '';

/** Requests that end in the same millisecond share the work of writing it. */
function isoTime(ms: number): string {
  const whole = Math.floor(ms);
  if (whole !== lastMs) {
    lastMs = whole;
    lastTime = new Date(whole).toISOString();
  }
  return lastTime;
}

const us = (ns: number): number => Math.round(ns / 1000);

/** @returns the line with its line end; fields that do not apply are left out */
export function accessLine(e: AccessEntry): string {
  let line = `{"time":"${isoTime(e.endedMs)}","protocol":"${e.protocol}","status":${e.status},"model":${quote(e.model)},"version":${quote(e.version)}`;
  if (e.number !== undefined) line += `,"request":${e.number}`;
  if (e.id !== '') line += `,"id":${quote(e.id)}`;
  if (e.peer !== '') line += `,"peer":${quote(e.peer)}`;
  if (e.reason !== undefined) line += `,"reason":${quote(e.reason)}`;
  if (e.rows !== undefined) line += `,"rows":${e.rows}`;
  line += `,"bytes_in":${e.bytesIn},"bytes_out":${e.bytesOut},"total_us":${Math.round(e.totalUs)}`;
  const { timings, trace } = e;
  if (timings)
    line += `,"queue_us":${us(timings.queueNs)},"compute_input_us":${us(timings.computeInputNs)},"compute_infer_us":${us(timings.computeInferNs)},"compute_output_us":${us(timings.computeOutputNs)},"batch_size":${timings.batchRows}`;
  if (trace) line += `,"trace_id":"${trace.traceId}","parent_id":"${trace.parentId}"`;
  return `${line}}\n`;
}
