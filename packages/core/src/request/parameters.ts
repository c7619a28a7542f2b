/** The request parameters that Paceline itself reads. Unknown ones are the model's business; `triton_*` is nobody's. */
import { ServingError, type Parameters, type ParameterValue } from '@paceline/protocol';

export interface RequestParameters {
  /** 0 = the model's default; 1 is the highest level. */
  readonly priority: number;
  /** Queue timeout, microseconds; 0 = none asked. */
  readonly timeoutUs: number;
}

const NONE: RequestParameters = { priority: 0, timeoutUs: 0 };
const MAX_UINT64 = 2n ** 64n - 1n;

/** Whole and in the range of an unsigned 64-bit integer; beyond 2^53 it saturates, which no policy can tell apart. */
function unsigned(name: string, value: ParameterValue): number {
  const whole = typeof value === 'bigint' ? value : typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : undefined;
  if (whole === undefined || whole < 0n || whole > MAX_UINT64) {
    const found = typeof value === 'string' ? JSON.stringify(value) : String(value);
    throw new ServingError(
      'INVALID_ARGUMENT',
      `Unable to parse '${name}': attempt to access JSON non-unsigned-integer as unsigned-integer (found ${found})`,
      {
        reason: 'parameter_invalid',
      },
    );
  }
  return whole > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(whole);
}

/**
 * @throws ServingError INVALID_ARGUMENT for a reserved key, or a priority or timeout that is no unsigned 64-bit integer
 */
export function readParameters(parameters: Parameters): RequestParameters {
  let found: { priority: number; timeoutUs: number } | undefined;
  for (const key in parameters) {
    if (key === 'priority') (found ??= { ...NONE }).priority = unsigned(key, parameters[key] as ParameterValue);
    else if (key === 'timeout') (found ??= { ...NONE }).timeoutUs = unsigned(key, parameters[key] as ParameterValue);
    else if (key.startsWith('triton_')) {
      throw new ServingError(
        'INVALID_ARGUMENT',
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
        { reason: 'parameter_reserved' },
      );
    }
  }
  return found ?? NONE;
}
