/** For tests: spans as they are made, in order. Everything is sampled. */
import type { Span, SpanEnd, SpanStart, Tracing } from '../tracing/tracing.js';

export interface RecordedSpan extends SpanStart {
  readonly traceParent: string;
  /** undefined = it has not ended. */
  end: SpanEnd | undefined;
}

export class RecordedTracing implements Tracing {
  readonly spans: RecordedSpan[] = [];

  /** `traceparent` values count up: `span-1`, `span-2`. */
  start(start: SpanStart): Span {
    const span: RecordedSpan = { ...start, traceParent: `span-${this.spans.length + 1}`, end: undefined };
    this.spans.push(span);
    return {
      traceParent: span.traceParent,
      end(end) {
        if (span.end) throw new Error(`span ${span.traceParent} ended twice`);
        span.end = end;
      },
    };
  }

  /** What there is, a few words each: name, parent, reason of its error. */
  get summary(): string[] {
    return this.spans.map(({ name, parent, end }) => `${name} under ${parent ?? 'nobody'}: ${end ? (end.error?.reason ?? 'ok') : 'open'}`);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
