/**
 * Errors in gRPC's form. The codes are already gRPC's; a hint when to try again travels in the trailer that gRPC clients
 * with a retry policy obey, the machine-readable reason beside it.
 */
import { Metadata, type StatusObject } from '@grpc/grpc-js';
import { ERROR_CODES, toServingError, type ServingError } from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';

/** @param thrown any value; what is no ServingError is logged and answered as INTERNAL without its text. */
export function toGrpcStatus(thrown: unknown, logger: Logger, path: string): StatusObject {
  const error = toServingError(thrown);
  if (error !== thrown) logger.error({ err: thrown, path }, 'gRPC request failed');
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(retryTrailers(error))) metadata.set(name, value);
  return { code: ERROR_CODES[error.code], details: error.message, metadata };
}

/** What an error says beside its code and text: its reason, and when to try again, for libraries and for people. */
export function retryTrailers({ reason, retryAfterMs }: ServingError): Readonly<Record<string, string>> {
  if (retryAfterMs === undefined) return { 'paceline-reason': reason };
  const ms = String(Math.ceil(retryAfterMs));
  return { 'paceline-reason': reason, 'grpc-retry-pushback-ms': ms, 'retry-after-ms': ms };
}
