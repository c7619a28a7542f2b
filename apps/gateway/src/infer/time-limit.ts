/**
 * How long a request may take: the server's limit, or a shorter one of the client. Invariant: the error that ends a
 * request for its time says which limit it was, its value, and where it is set.
 */
import { requestPrefix } from '@paceline/core';
import { ServingError } from '@paceline/protocol';

/** A limit that the client set, counted from when its request was read. */
export interface TimeLimit {
  /** On the monotonic clock. */
  readonly dueUs: number;
  /** As the client wrote it. */
  readonly limitUs: number;
  /** For the error, e.g. "the header x-request-timeout-ms". */
  readonly setBy: string;
}

/** HTTP header with the milliseconds that a client grants its request. */
export const TIMEOUT_HEADER = 'x-request-timeout-ms';
const MAX_TIMEOUT_MS = 86_400_000;

/** @param text the header's value; undefined where absent. @throws ServingError INVALID_ARGUMENT */
export function limitOfHeader(text: string | undefined, nowUs: number): TimeLimit | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{1,8}$/.test(text) ? Number(text) : 0;
  if (ms < 1 || ms > MAX_TIMEOUT_MS) {
    throw new ServingError(
      'INVALID_ARGUMENT',
      `Unable to parse ${TIMEOUT_HEADER}: expected a whole number of milliseconds from 1 to ${MAX_TIMEOUT_MS}, got '${text.slice(0, 40)}'`,
      { reason: 'timeout_header_invalid' },
    );
  }
  return { dueUs: nowUs + ms * 1000, limitUs: ms * 1000, setBy: `the header ${TIMEOUT_HEADER}` };
}

/**
 * Milliseconds before the end of a call that its own error leaves, so that it comes before the bare one with which the
 * gRPC library ends the call.
 */
const GRPC_HEADROOM_MS = 2;

/** @param deadline as grpc-js gives it: milliseconds since the epoch, Infinity without one */
export function limitOfCall(deadline: Date | number, wallMs: number, nowUs: number): TimeLimit | undefined {
  const leftMs = Number(deadline) - wallMs;
  if (leftMs === Infinity || Number.isNaN(leftMs)) return undefined;
  return {
    dueUs: nowUs + Math.max(0, leftMs - GRPC_HEADROOM_MS) * 1000,
    limitUs: Math.max(0, leftMs) * 1000,
    setBy: 'the deadline of the call',
  };
}

export interface Overdue {
  readonly clientId: string;
  readonly model: { readonly name: string; readonly version: string };
  /** undefined = the server's own limit. */
  readonly limit: TimeLimit | undefined;
}

export function overdueError({ clientId, model, limit }: Overdue, serverLimitUs: number): ServingError {
  const [seconds, setBy] = limit ? [limit.limitUs / 1e6, limit.setBy] : [serverLimitUs / 1e6, 'the server (--request-timeout-ms)'];
  const text = `${requestPrefix(clientId)}request to model '${model.name}' version ${model.version} was not answered within ${Number(seconds.toFixed(3))} s, the limit set by ${setBy}`;
  return new ServingError('DEADLINE_EXCEEDED', text, { reason: 'request_timeout' });
}
