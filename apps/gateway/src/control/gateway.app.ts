/**
 * Builds the HTTP control application: NestJS on Fastify, initialised but not listening. The data plane owns the port and
 * hands over each connection that is not an inference request with `app.getHttpServer().emit('connection', socket)`; an app
 * that listens by itself works as well.
 */
import 'reflect-metadata';
import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { openAccess } from '../access/access-policy.js';
import { guardRoutes } from '../access/http-access.js';
import { ControlModule } from './control.module.js';
import { ServingError } from '@paceline/protocol';
import { tooManyHeadersText } from '../http/data-plane-limits.js';
import { DEFAULT_LIMITS, type GatewayOptions } from './gateway.options.js';
import { NestLogger } from '@paceline/nest-kit';

export interface GatewayAppOptions extends GatewayOptions {
  /** Mounts inference routes on Fastify's own instance, beside Nest. */
  readonly registerInferRoutes?: (fastify: FastifyInstance) => void;
}

/** @returns the application, ready for connections; `close()` ends it. */
export async function createGatewayApp(options: GatewayAppOptions): Promise<NestFastifyApplication> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const adapter = new FastifyAdapter({
    http: { maxHeaderSize: limits.maxHeaderBytes, headersTimeout: limits.headerTimeoutS * 1000 },
    requestTimeout: limits.requestTimeoutS * 1000,
    keepAliveTimeout: limits.idleTimeoutS * 1000,
    bodyLimit: options.limits.maxRequestBytes,
    exposeHeadRoutes: false,
    // The one path that answers with and without a slash at its end, as in Triton.
    rewriteUrl: ({ url = '/' }) => (url === '/v2/' ? '/v2' : url),
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: answerBadPath,
  });
  const app = await NestFactory.create<NestFastifyApplication>(ControlModule.register(options), adapter, {
    bodyParser: false,
    logger: new NestLogger(options.logger),
    abortOnError: false,
  });
  const fastify = adapter.getInstance<FastifyInstance>();
  // Node drops what is beyond its own count without a word.
  adapter.getHttpServer<HttpServer>().maxHeadersCount = 0;
  fastify.addHook('onRequest', async (request) => {
    const count = request.raw.rawHeaders.length / 2;
    if (count > limits.maxHeaderCount)
      throw new ServingError('INVALID_ARGUMENT', tooManyHeadersText(count, limits.maxHeaderCount), {
        reason: 'too_many_headers',
        httpStatus: 431,
      });
  });
  // Clients send these small JSON bodies with any content type or none: routes read the bytes themselves.
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  // JSON is UTF-8 by definition and the type has no charset: clients that compare it literally meet what Triton sends.
  fastify.addHook('onSend', async (_request, reply) => {
    if (reply.getHeader('content-type') === 'application/json; charset=utf-8') void reply.header('content-type', 'application/json');
  });
  const access = options.access ?? openAccess();
  // Off unless origins are named: no page of another origin can read an answer then.
  if (access.corsOrigins.length > 0) app.enableCors(corsOf(access.corsOrigins));
  guardRoutes(fastify, access, options.logger);
  options.registerInferRoutes?.(fastify);
  await app.init();
  await fastify.ready();
  return app;
}

/** How long a browser may remember that a call is allowed, in seconds. */
const CORS_MAX_AGE_S = 600;

function corsOf(origins: readonly string[]): Parameters<NestFastifyApplication['enableCors']>[0] {
  return {
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'POST'],
    exposedHeaders: ['Inference-Header-Content-Length', 'Retry-After'],
    maxAge: CORS_MAX_AGE_S,
  };
}

/** Answers a path that cannot be decoded, which no route sees. */
function answerBadPath(error: FastifyError, _request: FastifyRequest, reply: FastifyReply): void {
  void reply
    .code(error.statusCode ?? 400)
    .type('application/json')
    .send(JSON.stringify({ error: error.message }));
}

/** Answers what is not even HTTP, in the form of every other error. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const overflow = error.code === 'HPE_HEADER_OVERFLOW';
  const body = JSON.stringify({ error: overflow ? 'request headers are too large' : `malformed HTTP request: ${error.message}` });
  const status = overflow ? '431 Request Header Fields Too Large' : '400 Bad Request';
  if (socket.writable)
    socket.write(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  socket.destroySoon();
}
