/** An error of a host that travels as a `failed` frame. The host loads nothing but what it runs, so no ServingError here. */
import type { ErrorCode } from '@paceline/protocol';

export class HostError extends Error {
  constructor(
    readonly code: ErrorCode,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}
