/**
 * Decodes inference.ModelInferRequest by hand: this runs once per gRPC request, and the generated code costs several times
 * as much. Raw contents are views of the message; typed contents stay undecoded ranges until the datatype is known
 * (typed-contents.ts). Unknown fields are skipped, of a repeated scalar the last counts, as protobuf says.
 */
import type { ParameterValue } from '../infer.js';
import { malformed, WireReader } from './wire-reader.js';
import type { ContentRange } from './typed-contents.js';

/** More of these than any client sends; a message beyond is refused before it costs memory. */
export const WIRE_LIMITS = { tensors: 4096, rank: 64, parameters: 1024 } as const;

/** undefined = a parameter whose value is not set. */
export type WireParameters = ReadonlyMap<string, ParameterValue | undefined>;

export interface WireInput {
  readonly name: string;
  /** As sent; may be no data type of the protocol. */
  readonly datatype: string;
  /** As sent; may hold any 64-bit value, beyond 2^53 the nearest. */
  readonly shape: readonly number[];
  readonly parameters: WireParameters;
  /** Where the typed contents lie in the message; undefined = the field is absent. */
  readonly contents: readonly ContentRange[] | undefined;
}

export interface WireOutput {
  readonly name: string;
  readonly parameters: WireParameters;
}

export interface WireInferRequest {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly id: string;
  readonly parameters: WireParameters;
  readonly inputs: readonly WireInput[];
  readonly outputs: readonly WireOutput[];
  /** Views of `message`. */
  readonly rawInputContents: readonly Uint8Array[];
  readonly message: Uint8Array;
}

const NO_PARAMETERS: WireParameters = new Map();

/** @throws ServingError INVALID_ARGUMENT for bytes that are no such message, or one beyond {@link WIRE_LIMITS}. */
export function decodeModelInferRequest(message: Uint8Array): WireInferRequest {
  const reader = new WireReader(message);
  let modelName = '';
  let modelVersion = '';
  let id = '';
  let parameters: Map<string, ParameterValue | undefined> | undefined;
  const inputs: WireInput[] = [];
  const outputs: WireOutput[] = [];
  const rawInputContents: Uint8Array[] = [];
  while (reader.pos < reader.end) {
    const tag = reader.varint32();
    switch (tag) {
      case 0x0a:
        modelName = reader.string();
        break;
      case 0x12:
        modelVersion = reader.string();
        break;
      case 0x1a:
        id = reader.string();
        break;
      case 0x22:
        parameters = readParameter(reader, parameters);
        break;
      case 0x2a:
        bounded(inputs.length, 'inputs');
        inputs.push(readInput(reader));
        break;
      case 0x32:
        bounded(outputs.length, 'outputs');
        outputs.push(readOutput(reader));
        break;
      case 0x3a:
        bounded(rawInputContents.length, 'raw_input_contents');
        rawInputContents.push(reader.view());
        break;
      default:
        reader.skip(tag);
    }
  }
  return { modelName, modelVersion, id, parameters: parameters ?? NO_PARAMETERS, inputs, outputs, rawInputContents, message };
}

function bounded(count: number, what: string): void {
  if (count >= WIRE_LIMITS.tensors) malformed(`more than ${WIRE_LIMITS.tensors} ${what}`);
}

function readInput(reader: WireReader): WireInput {
  const outer = reader.enter();
  let name = '';
  let datatype = '';
  const shape: number[] = [];
  let parameters: Map<string, ParameterValue | undefined> | undefined;
  let contents: ContentRange[] | undefined;
  while (reader.pos < reader.end) {
    const tag = reader.varint32();
    switch (tag) {
      case 0x0a:
        name = reader.string();
        break;
      case 0x12:
        datatype = reader.string();
        break;
      case 0x1a: {
        const outerShape = reader.enter();
        while (reader.pos < reader.end) pushDimension(shape, reader);
        reader.leave(outerShape);
        break;
      }
      case 0x18:
        pushDimension(shape, reader);
        break;
      case 0x22:
        parameters = readParameter(reader, parameters);
        break;
      case 0x2a: {
        const length = reader.varint32();
        const start = reader.advance(length);
        if (contents) bounded(contents.length, 'pieces of contents');
        (contents ??= []).push({ start, end: start + length });
        break;
      }
      default:
        reader.skip(tag);
    }
  }
  reader.leave(outer);
  return { name, datatype, shape, parameters: parameters ?? NO_PARAMETERS, contents };
}

function pushDimension(shape: number[], reader: WireReader): void {
  if (shape.length >= WIRE_LIMITS.rank) malformed(`an input has more than ${WIRE_LIMITS.rank} dimensions`);
  shape.push(reader.int64Number());
}

function readOutput(reader: WireReader): WireOutput {
  const outer = reader.enter();
  let name = '';
  let parameters: Map<string, ParameterValue | undefined> | undefined;
  while (reader.pos < reader.end) {
    const tag = reader.varint32();
    if (tag === 0x0a) name = reader.string();
    else if (tag === 0x12) parameters = readParameter(reader, parameters);
    else reader.skip(tag);
  }
  reader.leave(outer);
  return { name, parameters: parameters ?? NO_PARAMETERS };
}

/** One entry of a map<string, InferParameter>; of equal keys the last counts. */
function readParameter(
  reader: WireReader,
  into: Map<string, ParameterValue | undefined> = new Map<string, ParameterValue | undefined>(),
): Map<string, ParameterValue | undefined> {
  if (into.size >= WIRE_LIMITS.parameters) malformed(`more than ${WIRE_LIMITS.parameters} parameters`);
  const outer = reader.enter();
  let key = '';
  let value: ParameterValue | undefined;
  while (reader.pos < reader.end) {
    const tag = reader.varint32();
    if (tag === 0x0a) key = reader.string();
    else if (tag === 0x12) value = readParameterValue(reader, value);
    else reader.skip(tag);
  }
  reader.leave(outer);
  into.set(key, value);
  return into;
}

/** An InferParameter: int64 and uint64 become bigint, double becomes number. */
function readParameterValue(reader: WireReader, value: ParameterValue | undefined): ParameterValue | undefined {
  const outer = reader.enter();
  let result = value;
  while (reader.pos < reader.end) {
    const tag = reader.varint32();
    switch (tag) {
      case 0x08:
        reader.varint64();
        result = (reader.low | reader.high) !== 0;
        break;
      case 0x10:
        result = reader.int64();
        break;
      case 0x1a:
        result = reader.string();
        break;
      case 0x21:
        result = reader.double();
        break;
      case 0x28:
        result = reader.uint64();
        break;
      default:
        reader.skip(tag);
    }
  }
  reader.leave(outer);
  return result;
}
