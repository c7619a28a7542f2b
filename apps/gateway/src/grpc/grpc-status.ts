/**
 * Errors in gRPC's form. The codes are already gRPC's; a hint when to try again travels in the trailer that gRPC clients
 * with a retry policy obey, the machine-readable reason beside it.
 */
import { Metadata, type StatusObject } from '@grpc/grpc-js';
import { ERROR_CODES, toServingError } from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';

/** @param thrown any value; what is no ServingError is logged and answered as INTERNAL without its text. */
export function toGrpcStatus(thrown: unknown, logger: Logger, path: string): StatusObject {
  const error = toServingError(thrown);
  if (error !== thrown) logger.error({ err: thrown, path }, 'gRPC request failed');
  const metadata = new Metadata();
  metadata.set('paceline-reason', error.reason);
  if (error.retryAfterMs !== undefined) metadata.set('grpc-retry-pushback-ms', String(Math.ceil(error.retryAfterMs)));
  return { code: ERROR_CODES[error.code], details: error.message, metadata };
}
