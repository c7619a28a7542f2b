/** Reads the W3C trace context that a client sends. What is not in its form is treated as not sent, as the standard says. */

export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** The client's span, 16 hex digits. */
  readonly parentId: string;
}

/** Later versions may add fields behind the flags; version ff is none. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/;
const ZEROS = /^0+$/;

/** @param traceparent value of the header or of the gRPC metadata entry of that name */
export function readTraceContext(traceparent: string | undefined): TraceContext | undefined {
  if (traceparent === undefined) return undefined;
  const [, traceId, parentId] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || parentId === undefined || ZEROS.test(traceId) || ZEROS.test(parentId)) return undefined;
  return { traceId, parentId };
}
