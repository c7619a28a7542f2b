/** The JSON part of a body, bytes to request: the fast parse first, the exact one only where digits would be lost. */
import { InexactIntegerError } from '@paceline/tensor';
import { decodeInferJson, type DecodedInfer, type InferTarget } from './infer-json.js';
import { jsonTextOf, parseJson } from './json-text.js';

/**
 * @param tail bytes behind the JSON part; undefined where the client sent no Inference-Header-Content-Length
 * @throws ServingError INVALID_ARGUMENT
 */
export function decodeJsonBody(json: Buffer, tail: Uint8Array | undefined, target: InferTarget): DecodedInfer {
  const text = jsonTextOf(json);
  try {
    return decodeInferJson(parseJson(text, false), tail, false, target);
  } catch (error) {
    if (!(error instanceof InexactIntegerError)) throw error;
    return decodeInferJson(parseJson(text, true), tail, true, target);
  }
}
