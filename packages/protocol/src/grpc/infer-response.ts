/**
 * Encodes inference.ModelInferResponse and ModelStreamInferResponse by hand, into one buffer of the exact size: each output
 * is copied once. Outputs are always raw, in the order of `outputs`. The bytes are those of a canonical protobuf encoder
 * except for the order of map entries, which means nothing.
 */
import type { Tensor } from '@paceline/tensor';
import type { Parameters, ParameterValue } from '../infer.js';

export interface WireInferResponse {
  readonly modelName: string;
  readonly modelVersion: string;
  /** The request's, echoed. */
  readonly id: string;
  readonly parameters?: Parameters;
  readonly outputs: readonly Tensor[];
}

/** @returns the serialised ModelInferResponse. */
export function encodeModelInferResponse(response: WireInferResponse): Buffer {
  const out = Buffer.allocUnsafe(responseSize(response));
  writeResponse(out, 0, response);
  return out;
}

/** @param errorMessage "" for a success. @returns the serialised ModelStreamInferResponse. */
export function encodeModelStreamInferResponse(errorMessage: string, response: WireInferResponse): Buffer {
  const inner = responseSize(response);
  const out = Buffer.allocUnsafe(textSize(errorMessage) + 1 + varintSize(inner) + inner);
  let at = writeText(out, 0, 0x0a, errorMessage);
  out[at++] = 0x12;
  at = writeVarint(out, at, inner);
  writeResponse(out, at, response);
  return out;
}

function responseSize(response: WireInferResponse): number {
  let size = textSize(response.modelName) + textSize(response.modelVersion) + textSize(response.id);
  if (response.parameters) {
    for (const key of Object.keys(response.parameters)) size += fieldSize(entrySize(key, response.parameters[key]!));
  }
  for (const tensor of response.outputs) size += fieldSize(tensorSize(tensor)) + fieldSize(tensor.data.length);
  return size;
}

function writeResponse(out: Buffer, start: number, response: WireInferResponse): void {
  let at = writeText(out, start, 0x0a, response.modelName);
  at = writeText(out, at, 0x12, response.modelVersion);
  at = writeText(out, at, 0x1a, response.id);
  if (response.parameters) {
    for (const key of Object.keys(response.parameters)) at = writeEntry(out, at, key, response.parameters[key]!);
  }
  const { outputs } = response;
  for (let i = 0; i < outputs.length; i += 1) {
    const tensor = outputs[i]!;
    out[at++] = 0x2a;
    at = writeVarint(out, at, tensorSize(tensor));
    at = writeText(out, at, 0x0a, tensor.name);
    at = writeText(out, at, 0x12, tensor.datatype);
    const { shape } = tensor;
    if (shape.length > 0) {
      out[at++] = 0x1a;
      at = writeVarint(out, at, packedSize(shape));
      for (let d = 0; d < shape.length; d += 1) at = writeVarint(out, at, shape[d]!);
    }
  }
  for (let i = 0; i < outputs.length; i += 1) {
    const { data } = outputs[i]!;
    out[at++] = 0x32;
    at = writeVarint(out, at, data.length);
    out.set(data, at);
    at += data.length;
  }
}

const tensorSize = (tensor: Tensor): number =>
  textSize(tensor.name) + textSize(tensor.datatype) + (tensor.shape.length > 0 ? fieldSize(packedSize(tensor.shape)) : 0);

/** Size of a length-delimited field whose tag is one byte. */
const fieldSize = (length: number): number => 1 + varintSize(length) + length;

/** Empty strings are left out, as proto3 does. */
function textSize(text: string): number {
  if (text === '') return 0;
  return fieldSize(utf8Size(text));
}

function utf8Size(text: string): number {
  const { length } = text;
  if (length > 64) return Buffer.byteLength(text);
  for (let i = 0; i < length; i += 1) if (text.charCodeAt(i) > 0x7f) return Buffer.byteLength(text);
  return length;
}

function writeText(out: Buffer, start: number, tag: number, text: string): number {
  if (text === '') return start;
  out[start] = tag;
  const size = utf8Size(text);
  const at = writeVarint(out, start + 1, size);
  if (size === text.length && size <= 64) for (let i = 0; i < size; i += 1) out[at + i] = text.charCodeAt(i);
  else out.write(text, at, size, 'utf8');
  return at + size;
}

function packedSize(values: readonly number[]): number {
  let size = 0;
  for (let i = 0; i < values.length; i += 1) size += varintSize(values[i]!);
  return size;
}

/** Bytes of the varint of an integer in [0, 2^53]. */
function varintSize(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x200000) return 3;
  if (value < 0x10000000) return 4;
  let size = 4;
  for (let rest = Math.floor(value / 0x10000000); rest > 0; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}

function writeVarint(out: Buffer, start: number, value: number): number {
  let at = start;
  let rest = value;
  while (rest >= 0x80) {
    out[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  out[at++] = rest;
  return at;
}

const INT64_MAX = 0x7fff_ffff_ffff_ffffn;

function bigintSize(value: bigint): number {
  let size = 1;
  for (let rest = BigInt.asUintN(64, value) >> 7n; rest > 0n; rest >>= 7n) size += 1;
  return size;
}

/** Size of an InferParameter. */
function valueSize(value: ParameterValue): number {
  if (typeof value === 'boolean') return 2;
  if (typeof value === 'number') return 9;
  if (typeof value === 'bigint') return 1 + bigintSize(value);
  return fieldSize(utf8Size(value));
}

/** Size of a map entry; its key is written even where it is empty. */
const entrySize = (key: string, value: ParameterValue): number => fieldSize(utf8Size(key)) + fieldSize(valueSize(value));

function writeEntry(out: Buffer, start: number, key: string, value: ParameterValue): number {
  out[start] = 0x22;
  let at = writeVarint(out, start + 1, entrySize(key, value));
  if (key === '') {
    out[at++] = 0x0a;
    out[at++] = 0;
  } else at = writeText(out, at, 0x0a, key);
  out[at++] = 0x12;
  at = writeVarint(out, at, valueSize(value));
  if (typeof value === 'boolean') {
    out[at++] = 0x08;
    out[at++] = value ? 1 : 0;
  } else if (typeof value === 'number') {
    out[at++] = 0x21;
    at = out.writeDoubleLE(value, at);
  } else if (typeof value === 'bigint') {
    out[at++] = value > INT64_MAX ? 0x28 : 0x10;
    let rest = BigInt.asUintN(64, value);
    for (; rest >= 0x80n; rest >>= 7n) out[at++] = Number(rest & 0x7fn) | 0x80;
    out[at++] = Number(rest);
  } else {
    const size = utf8Size(value);
    out[at++] = 0x1a;
    at = writeVarint(out, at, size);
    at += out.write(value, at, size, 'utf8');
  }
  return at;
}
