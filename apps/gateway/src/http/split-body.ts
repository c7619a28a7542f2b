/** Where the JSON of a body ends and its binary tensors begin: at the Inference-Header-Content-Length. */
import { ServingError } from '@paceline/protocol';

/**
 * @param headerLength the header as sent; undefined = everything is JSON
 * @returns views of `body`
 * @throws ServingError INVALID_ARGUMENT
 */
export function splitBody(body: Buffer, headerLength: string | undefined): { readonly json: Buffer; readonly tail: Buffer | undefined } {
  if (headerLength === undefined) return { json: body, tail: undefined };
  const text = headerLength.trim();
  if (!/^\d+$/.test(text))
    throw new ServingError('INVALID_ARGUMENT', `Unable to parse Inference-Header-Content-Length, got: ${headerLength}`, {
      reason: 'inference_header_invalid',
    });
  const length = Number(text);
  if (length > body.length) {
    throw new ServingError('INVALID_ARGUMENT', `inference header size should be in range (0, ${body.length}), got: ${text}`, {
      reason: 'inference_header_invalid',
    });
  }
  return { json: body.subarray(0, length), tail: body.subarray(length) };
}
