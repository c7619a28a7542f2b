/** Triton's texts for requests that do not fit their model; all INVALID_ARGUMENT. */
import { ServingError, type InferRequest } from '@paceline/protocol';

/** Most texts open with the client's id. */
export function refuse(request: InferRequest, text: string, reason: string): ServingError {
  return new ServingError('INVALID_ARGUMENT', `${requestPrefix(request.id)}${text}`, { reason });
}

/** `[request id: <id>] `, or Triton's placeholder where the client gave none. */
export function requestPrefix(id: string): string {
  return `[request id: ${id === '' ? '<id_unknown>' : id}] `;
}

/** Unknown names are refused without the id. */
export function unprefixed(text: string, reason: string): ServingError {
  return new ServingError('INVALID_ARGUMENT', text, { reason });
}

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(',');

export function inputCount(
  request: InferRequest,
  model: string,
  min: number,
  max: number,
  got: readonly string[],
  missing: readonly string[],
): ServingError {
  const expected = min === max ? `expected ${max} inputs` : `expected number of inputs between ${min} and ${max}`;
  // Where nothing is missing Triton closes a bracket that it never opened; the text is kept as clients know it.
  const missingText = missing.length > 0 ? `[${quoted(missing)}]` : ']';
  return refuse(
    request,
    `${expected} but got ${got.length} inputs for model '${model}'. Got input(s) [${quoted(got)}], but missing required input(s) ${missingText}. Please provide all required input(s).`,
    'input_count_mismatch',
  );
}

export function noBatchDimension(request: InferRequest, input: string, model: string): ServingError {
  return refuse(request, `input '${input}' has no shape but model requires batch dimension for '${model}'`, 'batch_dimension_missing');
}

export function batchDiffers(request: InferRequest, input: string, model: string): ServingError {
  return refuse(request, `input '${input}' batch size does not match other inputs for '${model}'`, 'batch_size_differs');
}

export function batchTooBig(request: InferRequest, maxBatchSize: number, model: string): ServingError {
  return refuse(request, `inference request batch-size must be <= ${maxBatchSize} for '${model}'`, 'batch_size_exceeded');
}
