/** A collector for OTLP over HTTP, as much of one as tests need: it takes traces as JSON and shows the spans. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as it was exported. */
export interface CollectedSpan {
  readonly name: string;
  /** `service.name` of the process that made it. */
  readonly service: string;
  /** `service.instance.id`. */
  readonly instance: string;
  readonly traceId: string;
  readonly spanId: string;
  /** undefined = the first of its trace. */
  readonly parentSpanId: string | undefined;
  /** 2 = server. */
  readonly kind: number;
  /** Nanoseconds since the epoch. */
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Span ids. */
  readonly links: readonly string[];
  /** 2 = error. */
  readonly status: number;
}

export interface OtlpCollector {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  /** What came, in order. */
  readonly spans: readonly CollectedSpan[];
  /** How many exports came, taken or not. */
  readonly exports: number;
  /** What exports are answered; 200 at first. Only at 200 spans are kept. */
  status: number;
  /** Resolves with the spans once `enough` of them says yes. @throws Error that shows what came, after `limitMs` */
  until(enough: (spans: readonly CollectedSpan[]) => boolean, limitMs?: number): Promise<readonly CollectedSpan[]>;
  close(): Promise<void>;
}

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
}
type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[];
interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: OtlpAttributes;
  readonly links?: readonly { readonly spanId: string }[];
  readonly status?: { readonly code?: number };
}
interface OtlpExport {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

export async function startOtlpCollector(): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = [];
  const waiting = new Set<() => void>();
  let exports = 0;
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      exports += 1;
      const found = request.method === 'POST' && request.url === '/v1/traces' ? collector.status : 404;
      if (found === 200) spans.push(...spansOf(JSON.parse(text) as OtlpExport));
      response.writeHead(found, { 'Content-Type': 'application/json' }).end('{}');
      for (const look of waiting) look();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const collector: OtlpCollector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    get exports() {
      return exports;
    },
    status: 200,
    until: (enough, limitMs = 15_000) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look);
          const came = spans.map(({ service, name, traceId }) => `${service} ${name} ${traceId}`).join('\n');
          reject(new Error(`not enough spans within ${limitMs} ms; there are ${spans.length}:\n${came}`));
        }, limitMs);
        const look = (): void => {
          if (!enough(spans)) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(spans);
        };
        waiting.add(look);
        look();
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return collector;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

function spansOf({ resourceSpans }: OtlpExport): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const process = attributesOf(resource.attributes);
    return scopeSpans.flatMap((scope) =>
      scope.spans.map((span) => ({
        name: span.name,
        service: String(process['service.name']),
        instance: String(process['service.instance.id']),
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId === '' ? undefined : span.parentSpanId,
        kind: span.kind,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        attributes: attributesOf(span.attributes ?? []),
        links: (span.links ?? []).map(({ spanId }) => spanId),
        status: span.status?.code ?? 0,
      })),
    );
  });
}

function attributesOf(attributes: OtlpAttributes): Record<string, string | number | boolean> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => [
      key,
      stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue ?? '') : Number(intValue)),
    ]),
  );
}
