/** An error of a host that travels as a `failed` frame. The host loads nothing but what it runs, so no ServingError here. */
import type { ErrorCode } from '@paceline/protocol';

/** Reason of a run that the device failed: the process is of no use any more. */
export const DEVICE_FAILED = 'device_failed';

export class HostError extends Error {
  constructor(
    readonly code: ErrorCode,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}
