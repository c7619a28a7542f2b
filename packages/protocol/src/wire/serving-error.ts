/** A {@link ServingError} on the wire: code, message, reason and hints; its cause and its stack stay where it arose. */
import { ERROR_CODES, ServingError, type ErrorCode } from '../error.js';
import type { WireReader } from './reader.js';
import type { WireWriter } from './writer.js';

const HAS_RETRY_AFTER = 1;
const HAS_HTTP_STATUS = 2;
const NAMES = new Map(Object.entries(ERROR_CODES).map(([name, code]) => [code, name as ErrorCode]));

export function writeServingError(writer: WireWriter, error: ServingError): void {
  writer.u8(ERROR_CODES[error.code]);
  writer.u8((error.retryAfterMs === undefined ? 0 : HAS_RETRY_AFTER) | (error.httpStatus === undefined ? 0 : HAS_HTTP_STATUS));
  writer.string(error.message);
  writer.string(error.reason);
  if (error.retryAfterMs !== undefined) writer.f64(error.retryAfterMs);
  if (error.httpStatus !== undefined) writer.u16(error.httpStatus);
}

export function readServingError(reader: WireReader): ServingError {
  const number = reader.u8('error code');
  const code = NAMES.get(number as (typeof ERROR_CODES)[ErrorCode]) ?? reader.fail(`error code: ${number} is none`);
  const flags = reader.u8('error flags');
  const message = reader.string('error message');
  const reason = reader.string('error reason');
  const retryAfterMs = flags & HAS_RETRY_AFTER ? reader.f64('error retry after') : undefined;
  const httpStatus = flags & HAS_HTTP_STATUS ? reader.u16('error HTTP status') : undefined;
  return new ServingError(code, message, {
    reason,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(httpStatus === undefined ? {} : { httpStatus }),
  });
}
