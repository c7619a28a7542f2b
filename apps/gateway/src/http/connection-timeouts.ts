/** Judges, once a second, whether a connection has kept the server waiting for too long. Pure; times are whole seconds. */
import type { DataPlaneLimits } from './data-plane-limits.js';

/** What a connection is waiting for, and since when. */
export interface ConnectionState {
  /** Since the last byte either way. */
  readonly quietS: number;
  /** Since the first byte of the request that is being read. */
  readonly requestS: number;
  /** Requests under way. */
  readonly running: boolean;
  /** The last reply is out; the client should close. */
  readonly ending: boolean;
  readonly body: { readonly filledBytes: number; readonly totalBytes: number } | undefined;
  /** Part of a head was read. */
  readonly partialHead: boolean;
}

export type TimeoutVerdict =
  { readonly kind: 'wait' } | { readonly kind: 'cut' } | { readonly kind: 'refuse'; readonly reason: string; readonly text: string };

/** How long a refused client may go on sending before its connection is cut, so that it can read the refusal. */
const LINGER_S = 2;

const WAIT: TimeoutVerdict = { kind: 'wait' };
const CUT: TimeoutVerdict = { kind: 'cut' };

export function judgeTimeout(state: ConnectionState, limits: DataPlaneLimits): TimeoutVerdict {
  const { quietS, requestS, body } = state;
  // A request under way has its own deadline, which is not the connection's.
  if (state.running) return WAIT;
  if (state.ending) return quietS > LINGER_S ? CUT : WAIT;
  if (body !== undefined) {
    const soFar = `request body is incomplete: ${body.filledBytes} of ${body.totalBytes} bytes`;
    if (quietS > limits.stallTimeoutS) return refuse('body_stalled', `${soFar} came before ${limits.stallTimeoutS} s passed without any`);
    if (requestS > limits.requestTimeoutS) return refuse('request_timeout', `${soFar} came in ${limits.requestTimeoutS} s`);
    return WAIT;
  }
  if (state.partialHead) {
    const late = requestS > limits.headerTimeoutS;
    return late ? refuse('header_timeout', `request headers are incomplete after ${limits.headerTimeoutS} s`) : WAIT;
  }
  return quietS > limits.idleTimeoutS ? CUT : WAIT;
}

function refuse(reason: string, text: string): TimeoutVerdict {
  return { kind: 'refuse', reason, text };
}
