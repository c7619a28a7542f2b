/**
 * Sends spans to an OpenTelemetry collector by OTLP over HTTP, through OpenTelemetry's SDK, which is loaded only here and
 * only when tracing is on. Invariant: requests never wait for a collector; what it does not take in time is dropped.
 */
import type { HrTime, Span as OtelSpan, SpanContext } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '@paceline/clock';
import type { Logger } from '../log/logger.js';
import type { Span, SpanEnd, Tracing } from './tracing.js';

export interface OtlpTracingOptions {
  /** Where the collector takes traces; `/v1/traces` is added where the URL has no path. */
  readonly endpoint: string;
  /** Share of the requests that start a trace of their own, 0 to 1. What comes with a sampled parent always has spans. */
  readonly sampleRate: number;
  /** `service.name`. */
  readonly service: string;
  /** `service.instance.id`: of this process. */
  readonly instance: string;
  /** `service.version`. */
  readonly version?: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Spans that may wait for the collector; more are dropped. */
const MAX_WAITING = 8192;
const EXPORT_EVERY_MS = 1000;
const EXPORT_LIMIT_MS = 5000;
/** What the end of a process waits for a collector that does not answer. */
const CLOSE_LIMIT_US = 2_000_000;

export async function openOtlpTracing(options: OtlpTracingOptions): Promise<Tracing> {
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const { endpoint, sampleRate, service, instance, version, clock, logger } = options;
  const exporter = new WatchedExporter(
    new OTLPTraceExporter({ url: tracesUrl(endpoint), timeoutMillis: EXPORT_LIMIT_MS }),
    endpoint,
    logger,
  );
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      'service.name': service,
      'service.instance.id': instance,
      ...(version !== undefined && { 'service.version': version }),
    }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter,
        maxQueueSize: MAX_WAITING,
        scheduledDelayMillis: EXPORT_EVERY_MS,
        exportTimeoutMillis: EXPORT_LIMIT_MS,
      }),
    ],
  });
  const epoch = new Epoch(clock);
  const tracer = provider.getTracer('paceline');
  return {
    start({ name, parent: parentText, startUs, attributes, links }) {
      const parent = readParent(parentText);
      // Decided here and not by a sampler of the SDK: asking one costs more than the rest of what an unsampled request costs.
      const sampled = parent === undefined ? Math.random() < sampleRate : (parent.traceFlags & 1) === 1;
      if (!sampled) return undefined;
      const epochUs = epoch.us();
      const kind = name === 'paceline.infer' ? api.SpanKind.SERVER : api.SpanKind.INTERNAL;
      const startTime = hrTime(epochUs + startUs);
      const linked = links?.flatMap((link) => readParent(link) ?? []).map((context) => ({ context }));
      const context = parent === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, parent);
      const span = tracer.startSpan(name, { kind, startTime, attributes, ...(linked && { links: linked }) }, context);
      return new OtlpSpan(span, epochUs, api.SpanStatusCode.ERROR);
    },
    close: () =>
      new Promise((resolve) => {
        const timer = clock.setTimer(CLOSE_LIMIT_US, resolve);
        const done = (): void => {
          timer.cancel();
          resolve();
        };
        provider.shutdown().then(done, done);
      }),
  };
}

/**
 * What makes a time since 1970 of one on the monotonic clock. The wall clock tells whole milliseconds, so the largest
 * difference is nearest to the truth; one that is off by more means that the wall clock was set.
 */
class Epoch {
  #us = -Infinity;

  constructor(private readonly clock: Clock) {}

  us(): number {
    const seenUs = this.clock.wallMs() * 1000 - this.clock.nowUs();
    if (seenUs > this.#us || seenUs < this.#us - 1000) this.#us = seenUs;
    return this.#us;
  }
}

class OtlpSpan implements Span {
  readonly traceParent: string;

  constructor(
    private readonly span: OtelSpan,
    /** See {@link Epoch}. */
    private readonly epochUs: number,
    private readonly errorStatus: number,
  ) {
    const { traceId, spanId } = span.spanContext();
    this.traceParent = `00-${traceId}-${spanId}-01`;
  }

  end({ endUs, attributes, error }: SpanEnd): void {
    const { span } = this;
    if (attributes) span.setAttributes(attributes);
    if (error) {
      span.setAttributes({ 'error.type': error.reason, 'paceline.code': error.code });
      span.setStatus({ code: this.errorStatus, message: error.message });
    }
    span.end(hrTime(this.epochUs + endUs));
  }
}

/** Says once that a collector does not take spans, and once that it does again. */
class WatchedExporter implements SpanExporter {
  #failing = false;

  constructor(
    private readonly base: SpanExporter,
    private readonly endpoint: string,
    private readonly logger: Logger,
  ) {}

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.base.export(spans, (result) => {
      const failing = result.error !== undefined || Number(result.code) !== 0;
      if (failing && !this.#failing) {
        this.logger.warn({ err: result.error, endpoint: this.endpoint }, 'the collector takes no spans; they are dropped');
      } else if (!failing && this.#failing) this.logger.info({ endpoint: this.endpoint }, 'the collector takes spans again');
      this.#failing = failing;
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.base.shutdown();
  }
}

function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  return url.href;
}

/** Later versions may add fields behind the flags; version ff is none, nor are ids of zeros. */
const TRACE_PARENT = /^(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

function readParent(text: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = text === undefined ? [] : (TRACE_PARENT.exec(text) ?? []);
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: parseInt(flags, 16) & 1, isRemote: true };
}

function hrTime(us: number): HrTime {
  const seconds = Math.floor(us / 1e6);
  return [seconds, Math.min(999_999_999, Math.round((us - seconds * 1e6) * 1000))];
}
