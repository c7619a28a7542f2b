/**
 * The one closed set of error codes (gRPC's) and the one error class that carries them to a client.
 * A message says which input, what was expected and what was found; `reason` is stable and made for machines.
 */
export const ERROR_CODES = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface ServingErrorOptions {
  /** Stable, lower_snake_case, e.g. `queue_full`, `input_shape_mismatch`. */
  readonly reason?: string;
  /** For RESOURCE_EXHAUSTED and UNAVAILABLE: when trying again makes sense. */
  readonly retryAfterMs?: number;
  /** HTTP status where the code alone does not decide it (405, 413, 415, 501 ...). */
  readonly httpStatus?: number;
  readonly cause?: unknown;
}

/** An error that a client may see; anything else that is thrown is a bug and answered as INTERNAL without its text. */
export class ServingError extends Error {
  readonly code: ErrorCode;
  readonly reason: string;
  readonly retryAfterMs: number | undefined;
  readonly httpStatus: number | undefined;
  /** Statistics know of it. */
  counted = false;

  constructor(code: ErrorCode, message: string, options: ServingErrorOptions = {}) {
    // Collecting frames costs 5 us, a tenth of a refusal, and tells nothing: the message does. A bug keeps its trace.
    const { stackTraceLimit } = Error;
    if (code !== 'INTERNAL') Error.stackTraceLimit = 0;
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ServingError';
    this.code = code;
    this.reason = options.reason ?? code.toLowerCase();
    this.retryAfterMs = options.retryAfterMs;
    this.httpStatus = options.httpStatus;
  }
}

/** What the machine has run out of, by the system's error code, and what helps. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: 'the server has no file descriptors left (EMFILE); it needs fewer connections and models, or a higher limit (ulimit -n)',
  ENFILE: 'the machine has no file descriptors left (ENFILE)',
  ENOSPC: 'the machine has no disk space left (ENOSPC)',
  ENOMEM: 'the machine has no memory left (ENOMEM)',
};

/** `thrown` as a ServingError: itself, what the machine lacks, or INTERNAL with a message that gives nothing away. */
export function toServingError(thrown: unknown): ServingError {
  if (thrown instanceof ServingError) return thrown;
  const shortage = thrown instanceof Error && 'code' in thrown ? SHORTAGES[String(thrown.code)] : undefined;
  if (shortage !== undefined) return new ServingError('UNAVAILABLE', shortage, { reason: 'machine_exhausted', cause: thrown });
  return new ServingError('INTERNAL', 'internal error; the server log has the details', { reason: 'internal', cause: thrown });
}
