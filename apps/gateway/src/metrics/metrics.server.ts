/** Serves GET /metrics on a port of its own, so that scraping neither needs nor touches the ports of clients. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { httpStatusOf, retryAfterSeconds, toServingError } from '@paceline/protocol';
import type { Logger, Metrics } from '@paceline/telemetry';
import { openAccess, type AccessPolicy } from '../access/access-policy.js';
import { METRICS } from '../access/actions.js';
import { singleHeader } from '../access/http-access.js';

export interface MetricsServer {
  /** @returns the port; 0 picks one. Rejects where it is taken. */
  listen(port: number, host: string): Promise<number>;
  close(): Promise<void>;
}

/** @param access who may scrape; everybody without it */
export function createMetricsServer(metrics: Metrics, logger: Logger, access: AccessPolicy = openAccess()): MetricsServer {
  const server = createServer((request, response) => {
    void answer(request, response, metrics, logger, access);
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

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  metrics: Metrics,
  logger: Logger,
  access: AccessPolicy,
): Promise<void> {
  const path = (request.url ?? '').split('?', 1)[0];
  if (path !== '/metrics' && path !== '/metrics/') {
    refuse(response, 404, 'Not Found');
    return;
  }
  if (request.method !== 'GET') {
    response.setHeader('allow', 'GET');
    refuse(response, 405, 'Method Not Allowed');
    return;
  }
  try {
    access.authorize('http', METRICS, (name) => singleHeader(request.headers[name]));
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

function refuse(response: ServerResponse, status: number, error: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
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
