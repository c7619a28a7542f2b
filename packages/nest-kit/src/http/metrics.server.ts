/**
 * Serves GET /metrics on a port of its own, so that scraping neither needs nor touches the ports of clients; and /live and
 * /ready for a process that has no such ports.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { httpStatusOf, retryAfterSeconds, toServingError } from '@paceline/protocol';
import type { Logger, Metrics } from '@paceline/telemetry';

export interface MetricsServer {
  /** @returns the port; 0 picks one. Rejects where it is taken. */
  listen(port: number, host: string): Promise<number>;
  close(): Promise<void>;
}

/** What a process says of itself to a probe; called for each, so it must be cheap. */
export interface Health {
  readonly ready: boolean;
  /** What it waits for, a few words each; empty where it is ready. */
  readonly waitsFor: readonly string[];
}

export interface MetricsServerOptions {
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Who may scrape, by request headers; everybody without it. @throws ServingError */
  readonly authorize?: (header: (name: string) => string | undefined) => void;
  /** Answers /live and /ready, without a key; without it there are no such paths. */
  readonly health?: () => Health;
}

export function createMetricsServer(options: MetricsServerOptions): MetricsServer {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const { health } = options;
    if (path === '/metrics' || path === '/metrics/') void (isGet(request, response) && scrape(request, response, options));
    else if (health !== undefined && (path === '/live' || path === '/ready')) {
      if (isGet(request, response)) probe(response, path === '/live' ? { ready: true, waitsFor: [] } : health());
    } else refuse(response, 404, 'Not Found');
  });
  return {
    listen: (port, host) => listen(server, port, host),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function isGet(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method === 'GET') return true;
  response.setHeader('allow', 'GET');
  refuse(response, 405, 'Method Not Allowed');
  return false;
}

async function scrape(
  request: IncomingMessage,
  response: ServerResponse,
  { metrics, logger, authorize }: MetricsServerOptions,
): Promise<void> {
  try {
    authorize?.((name) => singleHeader(request.headers[name]));
  } catch (thrown) {
    const error = toServingError(thrown);
    if (error.code === 'UNAUTHENTICATED') response.setHeader('www-authenticate', 'Bearer');
    const retryAfter = retryAfterSeconds(error);
    if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter));
    refuse(response, httpStatusOf(error), error.message);
    return;
  }
  try {
    const text = await metrics.render();
    response.writeHead(200, { 'content-type': metrics.contentType, 'content-length': Buffer.byteLength(text) }).end(text);
  } catch (error) {
    logger.error({ err: error }, 'scrape failed');
    refuse(response, 500, 'internal error; the server log has the details');
  }
}

function probe(response: ServerResponse, { ready, waitsFor }: Health): void {
  response.writeHead(ready ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify({ ready, waitsFor }));
}

function refuse(response: ServerResponse, status: number, error: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
}

function singleHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.join(', ');
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
