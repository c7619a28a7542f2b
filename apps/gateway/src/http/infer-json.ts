/**
 * The JSON part of an inference request → what the core understands. Reads only the fields it knows, in Triton's order and
 * with Triton's texts. Invariant: every input returned has exactly one source, and binary sources are views of the tail
 * that together cover it.
 */
import { ServingError, type InferRequest, type Parameters, type ParameterValue, type RequestedOutput } from '@paceline/protocol';
import { InexactIntegerError } from '@paceline/tensor';
import { bounded, checkId, REQUEST_LIMITS } from '../infer/request-limits.js';
import { noSharedMemory, readInputs } from './infer-json-inputs.js';
import { asArray, asString, badField, isObject, isUnsigned, member, type JsonObject } from './json-access.js';

/** Which outputs the client wants as bytes behind the JSON. */
export interface OutputForm {
  /** For outputs without a choice of their own. */
  readonly binary: boolean;
  /** By output name, where the request names outputs. */
  readonly byName: ReadonlyMap<string, boolean> | undefined;
}

export interface DecodedInfer {
  readonly request: InferRequest;
  readonly form: OutputForm;
}

export interface InferTarget {
  readonly model: string;
  /** "" = not asked for. */
  readonly version: string;
}

const ALL_JSON: OutputForm = { binary: false, byName: undefined };
const NO_PARAMETERS: Parameters = {};

/**
 * @param root what the JSON parser gave
 * @param tail bytes behind the JSON part; undefined where the client sent no Inference-Header-Content-Length
 * @param exact whether `root` has BigInts for integers beyond 2^53
 * @throws ServingError INVALID_ARGUMENT; InexactIntegerError where digits may be lost and `exact` is false
 */
export function decodeInferJson(root: unknown, tail: Uint8Array | undefined, exact: boolean, target: InferTarget): DecodedInfer {
  const body: JsonObject = isObject(root) ? root : {};
  const id = body.id === undefined ? '' : asString(body.id, 'id');
  checkId(id);
  const { parameters, binaryOutput } = readParameters(body.parameters, exact);
  const inputs = readInputs(asArray(member(body, 'inputs'), 'inputs'), tail, exact, target.model);
  const named = body.outputs === undefined ? undefined : readOutputs(asArray(body.outputs, 'outputs'));
  return {
    request: { modelName: target.model, modelVersion: target.version, id, parameters, inputs, outputs: named?.outputs },
    // As in Triton, the request-wide choice holds only where the request names no outputs.
    form: named !== undefined ? { binary: false, byName: named.binary } : binaryOutput ? { binary: true, byName: undefined } : ALL_JSON,
  };
}

function readParameters(value: unknown, exact: boolean): { readonly parameters: Parameters; readonly binaryOutput: boolean } {
  if (value === undefined) return { parameters: NO_PARAMETERS, binaryOutput: false };
  if (!isObject(value))
    throw new ServingError('INVALID_ARGUMENT', 'failed to get request params.: attempt to get members for non-object', {
      reason: 'json_invalid',
    });
  const parameters: Record<string, ParameterValue> = {};
  let binaryOutput = false;
  const entries = Object.entries(value);
  bounded(entries.length, REQUEST_LIMITS.parameters, 'parameters');
  for (const [key, item] of entries) {
    switch (key) {
      case 'binary_data_output':
        if (typeof item !== 'boolean') throw badField(key, 'boolean', item);
        binaryOutput = item;
        continue;
      case 'sequence_start':
      case 'sequence_end':
        if (typeof item !== 'boolean') throw badField(key, 'boolean', item);
        break;
      case 'sequence_id':
        if (typeof item !== 'string' && !isUnsigned(item)) throw badField(key, 'string', item);
        break;
      case 'priority':
      case 'timeout':
        if (!isUnsigned(item)) throw badField(key, 'unsigned-integer', item);
        break;
    }
    parameters[key] = parameterValue(key, item, exact);
  }
  return { parameters, binaryOutput };
}

/** Whole numbers become BigInts, as the protocol's integers have 64 bits. */
function parameterValue(key: string, item: unknown, exact: boolean): ParameterValue {
  switch (typeof item) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return item;
    case 'number':
      if (!Number.isInteger(item)) return item;
      if (!Number.isSafeInteger(item)) {
        if (!exact) throw new InexactIntegerError();
        return item;
      }
      return BigInt(item);
    default:
      throw new ServingError('INVALID_ARGUMENT', `parameter '${key}' has invalid type. It should be either 'int', 'bool', or 'string'.`, {
        reason: 'parameter_invalid',
      });
  }
}

function readOutputs(
  items: readonly unknown[],
): { readonly outputs: readonly RequestedOutput[]; readonly binary: ReadonlyMap<string, boolean> } | undefined {
  if (items.length === 0) return undefined;
  bounded(items.length, REQUEST_LIMITS.tensors, 'outputs');
  const outputs: RequestedOutput[] = [];
  const binary = new Map<string, boolean>();
  for (const item of items) {
    const output: JsonObject = isObject(item) ? item : {};
    const name = asString(member(output, 'name'), 'name');
    const parameters: JsonObject = isObject(output.parameters) ? output.parameters : {};
    const { classification = 0, binary_data: wantsBinary = false } = parameters;
    if (parameters.shared_memory_region !== undefined) throw noSharedMemory('output', name);
    if (!isUnsigned(classification)) throw badField('classification', 'unsigned-integer', classification, 'set');
    if (typeof wantsBinary !== 'boolean') throw badField('binary_data', 'boolean', wantsBinary);
    outputs.push({ name, classification: Number(classification) });
    binary.set(name, wantsBinary);
  }
  return { outputs, binary };
}
