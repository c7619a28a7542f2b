/**
 * The one place where an HTTP control error becomes an answer: `{"error": "<message>"}` with the status of its code. What is
 * no ServingError and no client fault is a bug: it is logged, and answered without its text.
 */
import { Catch, HttpException, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { httpStatusOf, retryAfterSeconds, ServingError, toServingError } from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayLimits } from './gateway.options.js';
import { allowedMethod, namesRepository } from './routes.js';
import { GATEWAY_LIMITS, GATEWAY_LOGGER } from './tokens.js';

@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(
    @Inject(GATEWAY_LOGGER) private readonly logger: Logger,
    @Inject(GATEWAY_LIMITS) private readonly limits: GatewayLimits,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const reply = http.getResponse<FastifyReply>();
    const error = this.toServingError(thrown, request);
    if (error.code === 'INTERNAL')
      this.logger.error({ err: error.cause ?? error, method: request.method, url: request.url }, 'control request failed');
    const retryAfter = retryAfterSeconds(error);
    if (retryAfter !== undefined) void reply.header('retry-after', String(retryAfter));
    const allow = error.httpStatus === 405 ? allowedMethod(request.url) : undefined;
    if (allow !== undefined) void reply.header('allow', allow);
    void reply
      .code(httpStatusOf(error))
      .type('application/json')
      .send(JSON.stringify({ error: error.message }));
  }

  private toServingError(thrown: unknown, request: FastifyRequest): ServingError {
    if (thrown instanceof ServingError) return thrown;
    const status = statusOf(thrown);
    if (status === 404) return notFound(request);
    if (status === 413) {
      const announced = request.headers['content-length'];
      return refusal(
        413,
        `request body${announced === undefined ? '' : ` of ${announced} bytes`} exceeds the maximum allowed input size of ${this.limits.maxRequestBytes} bytes`,
      );
    }
    if (status !== undefined && status >= 400 && status < 500)
      return refusal(status, thrown instanceof Error ? thrown.message : 'Bad Request');
    return toServingError(thrown);
  }
}

/** The status an HTTP library gave an error, where it did. */
function statusOf(thrown: unknown): number | undefined {
  if (thrown instanceof HttpException) return thrown.getStatus();
  if (thrown instanceof Error && 'statusCode' in thrown && typeof thrown.statusCode === 'number') return thrown.statusCode;
  return undefined;
}

function notFound(request: FastifyRequest): ServingError {
  const allow = allowedMethod(request.url);
  if (allow !== undefined && !allow.split(', ').includes(request.method)) return refusal(405, 'Method Not Allowed');
  if (namesRepository(request.url))
    return new ServingError('UNIMPLEMENTED', `'repository_name' specification is not supported`, { reason: 'repository_name' });
  return refusal(404, 'Not Found');
}

const refusal = (httpStatus: number, message: string): ServingError =>
  new ServingError('INVALID_ARGUMENT', message, { httpStatus, reason: `http_${httpStatus}` });
