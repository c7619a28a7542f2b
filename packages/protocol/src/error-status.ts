/**
 * The one map from {@link ErrorCode} to an HTTP status. gRPC needs none: the codes are gRPC's.
 * Where Triton has a status for a code it is Triton's, except that overload (429) and a missed deadline (504) have their own.
 */
import type { ErrorCode, ServingError } from './error.js';

const HTTP_STATUS: Readonly<Record<ErrorCode, number>> = {
  CANCELLED: 400,
  UNKNOWN: 500,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 504,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 400,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 400,
  ABORTED: 409,
  OUT_OF_RANGE: 400,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DATA_LOSS: 500,
  UNAUTHENTICATED: 401,
};

/** The HTTP status that answers `error`: its own where it names one, else that of its code. */
export function httpStatusOf(error: ServingError): number {
  return error.httpStatus ?? HTTP_STATUS[error.code];
}

/** Value of a Retry-After header in whole seconds, at least 1; undefined where the error gives no hint. */
export function retryAfterSeconds(error: ServingError): number | undefined {
  return error.retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(error.retryAfterMs / 1000));
}
