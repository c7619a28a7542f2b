/**
 * Replies as status, headers, JSON text and binary chunks; nothing is copied here. Key order and number format are
 * Triton's. Invariant: the chunks follow the JSON in the order of its outputs.
 */
import { httpStatusOf, retryAfterSeconds, ServingError, type ServedModel } from '@paceline/protocol';
import { encodeJsonData, TensorFormatError, type Tensor } from '@paceline/tensor';
import type { ReplyTimings } from '../infer/reply-timings.js';
import type { OutputForm } from './infer-json.js';

export type HttpHeaders = readonly (readonly [name: string, value: string])[];

export interface HttpReply {
  readonly status: number;
  /** Without Content-Length, which whoever sends the reply adds. */
  readonly headers: HttpHeaders;
  readonly text: string;
  /** Sent behind `text`; views of the reply's tensors. */
  readonly chunks: readonly Uint8Array[];
}

/** Shared by all JSON replies, so that a sender may know it by identity. */
export const JSON_HEADERS: HttpHeaders = [['Content-Type', 'application/json']];
const NO_CHUNKS: readonly Uint8Array[] = [];
const PLAIN = /^[\w .:/-]*$/;

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

function jsonOf(output: Tensor): string {
  try {
    return encodeJsonData(output.datatype, output.data);
  } catch (error) {
    if (error instanceof TensorFormatError)
      throw new ServingError('INVALID_ARGUMENT', `output '${output.name}': ${error.message}`, { reason: 'output_not_json' });
    throw error;
  }
}

/**
 * @param timings becomes the parameters of the response
 * @throws ServingError where an output cannot be written as JSON
 */
export function inferReply(
  model: ServedModel,
  id: string,
  outputs: readonly Tensor[],
  form: OutputForm,
  timings?: ReplyTimings,
): HttpReply {
  let text = id === '' ? '{' : `{"id":${JSON.stringify(id)},`;
  text += `"model_name":${quote(model.name)},"model_version":"${model.version}",`;
  if (timings !== undefined) text += `"parameters":${JSON.stringify(timings)},`;
  text += '"outputs":[';
  let chunks: Uint8Array[] | undefined;
  for (let i = 0; i < outputs.length; i++) {
    const output = outputs[i] as Tensor;
    if (i > 0) text += ',';
    text += `{"name":${quote(output.name)},"datatype":"${output.datatype}","shape":[${output.shape.join(',')}],`;
    if (form.byName?.get(output.name) ?? form.binary) {
      (chunks ??= []).push(output.data);
      text += `"parameters":{"binary_data_size":${output.data.length}}}`;
    } else {
      text += `"data":${jsonOf(output)}}`;
    }
  }
  text += ']}';
  if (chunks === undefined) return { status: 200, headers: JSON_HEADERS, text, chunks: NO_CHUNKS };
  const headers: HttpHeaders = [
    ['Content-Type', 'application/octet-stream'],
    ['Inference-Header-Content-Length', String(Buffer.byteLength(text))],
  ];
  return { status: 200, headers, text, chunks };
}

/** `{"error":"…"}` with the status of its code; Retry-After where the error says when. */
export function errorReply(error: ServingError, extra?: HttpHeaders): HttpReply {
  const retryAfter = retryAfterSeconds(error);
  let headers = JSON_HEADERS;
  if (retryAfter !== undefined) headers = [...headers, ['Retry-After', String(retryAfter)]];
  if (error.code === 'UNAUTHENTICATED') headers = [...headers, ['WWW-Authenticate', 'Bearer']];
  if (extra !== undefined) headers = [...headers, ...extra];
  return { status: httpStatusOf(error), headers, text: JSON.stringify({ error: error.message }), chunks: NO_CHUNKS };
}
