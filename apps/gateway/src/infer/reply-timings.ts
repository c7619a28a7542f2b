/**
 * Tells a client where the time of its request went, when it asks with the request parameter `paceline_timings: true`: as
 * parameters of the response, in whole microseconds. The compute parts are those of the whole batch.
 */
import { ServingError, type Parameters, type StageTimings } from '@paceline/protocol';

export const TIMINGS_PARAMETER = 'paceline_timings';

/** @throws ServingError INVALID_ARGUMENT for a value that is no boolean */
export function wantsTimings(parameters: Parameters): boolean {
  const value = parameters[TIMINGS_PARAMETER];
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  throw new ServingError(
    'INVALID_ARGUMENT',
    `invalid value for parameter '${TIMINGS_PARAMETER}': expected true or false, found ${typeof value}`,
    {
      reason: 'parameter_invalid',
    },
  );
}

export interface ReplyTimings {
  readonly queue_us: number;
  readonly compute_input_us: number;
  readonly compute_infer_us: number;
  readonly compute_output_us: number;
  /** Rows of the batch that the request ran in. */
  readonly batch_size: number;
}

export function replyTimings(timings: StageTimings): ReplyTimings {
  return {
    queue_us: Math.round(timings.queueNs / 1000),
    compute_input_us: Math.round(timings.computeInputNs / 1000),
    compute_infer_us: Math.round(timings.computeInferNs / 1000),
    compute_output_us: Math.round(timings.computeOutputNs / 1000),
    batch_size: timings.batchRows,
  };
}

/** The same as 64-bit integers, which is how gRPC carries them. */
export function replyTimingParameters(timings: StageTimings): Parameters {
  const { queue_us, compute_input_us, compute_infer_us, compute_output_us, batch_size } = replyTimings(timings);
  return {
    queue_us: BigInt(queue_us),
    compute_input_us: BigInt(compute_input_us),
    compute_infer_us: BigInt(compute_infer_us),
    compute_output_us: BigInt(compute_output_us),
    batch_size: BigInt(batch_size),
  };
}
