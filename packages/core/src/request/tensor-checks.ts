/** The checks of one input's shape and bytes. Invariant: what passes holds exactly the elements its shape states. */
import type { InferRequest } from '@paceline/protocol';
import { formatShape, inspectBytes, type Tensor } from '@paceline/tensor';
import type { InputRule } from './signature.js';
import { refuse } from './texts.js';

const BATCH_NOTE =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. ' +
  'If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. ' +
  'See the model configuration docs for more info on max_batch_size.';

/**
 * Compares rank and dimensions; -1 in the configuration takes any size, 0 included.
 * @returns elements of one row (of the whole tensor where the model does not batch)
 */
export function checkShape(request: InferRequest, rule: InputRule, input: Tensor, model: string): number {
  const { shape } = input;
  const expected = rule.spec.shape;
  let elements = 1;
  let matches = shape.length === expected.length;
  for (let d = 0; matches && d < shape.length; d++) {
    const dim = shape[d] as number;
    if (!(dim >= 0) || !Number.isSafeInteger(dim)) {
      throw refuse(
        request,
        `invalid shape for input '${input.name}': shape ${formatShape(shape)} contains one or more invalid dimensions`,
        'input_shape_invalid',
      );
    }
    if (d < rule.firstDim) continue;
    elements *= dim;
    const want = expected[d] as number;
    matches = want < 0 || want === dim;
  }
  if (!matches) {
    throw refuse(
      request,
      `unexpected shape for input '${input.name}' for model '${model}'. Expected ${formatShape(expected)}, got ${formatShape(shape)}. ${rule.batches ? BATCH_NOTE : ''}`,
      'input_shape_mismatch',
    );
  }
  if (elements > Number.MAX_SAFE_INTEGER) {
    throw refuse(
      request,
      `invalid shape for input '${input.name}': shape ${formatShape(shape)} has too many elements`,
      'input_shape_invalid',
    );
  }
  return elements;
}

/** For types of fixed size. */
export function checkByteSize(request: InferRequest, input: Tensor, expectedBytes: number, model: string): void {
  if (input.data.length !== expectedBytes) {
    throw refuse(
      request,
      `input byte size mismatch for input '${input.name}' for model '${model}'. Expected ${expectedBytes}, got ${input.data.length}`,
      'input_byte_size_mismatch',
    );
  }
}

/** For BYTES: the blob is whole and holds exactly `expected` elements. */
export function checkBytesInput(request: InferRequest, input: Tensor, expected: number, model: string): void {
  const layout = inspectBytes(input.data);
  if (layout.kind === 'complete' && layout.elements === expected) return;
  const where = `for inference input '${input.name}' for model '${model}'`;
  let text: string;
  if (layout.kind === 'cut_length') {
    text = `incomplete string length indicator ${where}, expecting 4 bytes but only ${layout.leftBytes} bytes available. Please make sure the string length indicator is in one buffer.`;
  } else if (layout.elements > expected) {
    text = `unexpected number of string elements ${expected + 1} ${where}, expecting ${expected}`;
  } else if (layout.elements < expected) {
    text = `expected ${expected} string elements ${where}, got ${layout.elements}`;
  } else {
    const cut = layout.kind === 'cut_element' ? layout : { expectedBytes: 0, leftBytes: 0 };
    text = `incomplete string data ${where}, expecting string of length ${cut.expectedBytes} bytes but only ${cut.leftBytes} bytes available.`;
  }
  throw refuse(request, text, 'input_bytes_malformed');
}
