/** What a client may ask of the data plane. All are checked before the bytes in question are read or parsed. */
export interface DataPlaneLimits {
  /** Request line and headers; more is answered 431. */
  readonly maxHeaderBytes: number;
  /** Headers of one request; more is answered 431. */
  readonly maxHeaderCount: number;
  /** Body as sent; more is answered 413 before it is read. */
  readonly maxInputBytes: number;
  /** Bodies above 64 KiB that are being read or answered, all together; more is answered 429. */
  readonly maxBufferedBytes: number;
  /** Open connections; further ones are dropped. */
  readonly maxConnections: number;
  /** Requests of one connection that may be under way; reading pauses there. */
  readonly maxPipelined: number;
  /** From the first byte of a head to its end. */
  readonly headerTimeoutS: number;
  /** Without a byte of an unfinished body, or without progress of an unread reply. */
  readonly stallTimeoutS: number;
  /** From the first byte of a request to the last of its body. */
  readonly requestTimeoutS: number;
  /** Without a request. */
  readonly idleTimeoutS: number;
}

export const DEFAULT_DATA_PLANE_LIMITS: DataPlaneLimits = {
  maxHeaderBytes: 64 * 1024,
  maxHeaderCount: 100,
  maxInputBytes: 64 * 1024 * 1024,
  maxBufferedBytes: 2 * 1024 * 1024 * 1024,
  maxConnections: 10_000,
  maxPipelined: 64,
  headerTimeoutS: 10,
  stallTimeoutS: 30,
  requestTimeoutS: 300,
  idleTimeoutS: 75,
};

/** The refusal of a body by its announced size, the same on every way in. */
export function bodyTooLargeText(bodyBytes: number, maxBytes: number): string {
  return `request body size of ${bodyBytes} bytes exceeds the maximum allowed input size of ${maxBytes} bytes. Use --http-max-input-size to increase the limit.`;
}

export function tooManyHeadersText(found: number, max: number): string {
  return `request has ${found} headers, the limit is ${max}. Use --http-max-header-count to increase the limit.`;
}
