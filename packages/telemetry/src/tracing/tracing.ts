/**
 * Spans as the parts of the server see them: begun under the W3C `traceparent` of another span, in this process or in
 * another. Without tracing nobody holds a {@link Tracing}, which costs a request one branch a stop; a request that is not
 * sampled has no span and hands on no `traceparent`, so nothing behind the gateway does anything for it.
 */
import type { ServingError } from '@paceline/protocol';

/** Every span that there is, in the order of the request path. */
export const SPAN_NAMES = ['paceline.infer', 'paceline.queue', 'paceline.batch', 'paceline.execute'] as const;
export type SpanName = (typeof SPAN_NAMES)[number];

/** Names begin with `paceline.`; units stand last. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  readonly name: SpanName;
  /** W3C `traceparent`; undefined, or not in its form, = the first span of a trace. */
  readonly parent: string | undefined;
  /** On the monotonic clock of this process, microseconds. */
  readonly startUs: number;
  readonly attributes: SpanAttributes;
  /** `traceparent` of spans that it has to do with and that are not its parents. */
  readonly links?: readonly string[];
}

export interface SpanEnd {
  /** On the monotonic clock, microseconds. */
  readonly endUs: number;
  /** What is known only now. */
  readonly attributes?: SpanAttributes;
  /** undefined = it went well. */
  readonly error?: ServingError | undefined;
}

export interface Span {
  /** For those that it hands work to. */
  readonly traceParent: string;
  /** Once. */
  end(end: SpanEnd): void;
}

export interface Tracing {
  /** @returns undefined where it is not sampled */
  start(start: SpanStart): Span | undefined;
  /** Sends what waits, for some seconds at most. Never rejects. */
  close(): Promise<void>;
}
