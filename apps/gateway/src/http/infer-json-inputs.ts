/** The `inputs` of an inference request: JSON data converted, binary data cut out of the tail without copying. */
import { ServingError } from '@paceline/protocol';
import { decodeJsonData, InexactIntegerError, isDataType, TensorFormatError, type DataType, type Tensor } from '@paceline/tensor';
import { asArray, asString, badField, isObject, isUnsigned, member, type JsonObject } from './json-access.js';
import { bounded, REQUEST_LIMITS } from '../infer/request-limits.js';

const SOURCES =
  "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But ";

function invalid(text: string, reason: string): ServingError {
  return new ServingError('INVALID_ARGUMENT', text, { reason });
}

export function noSharedMemory(what: 'input' | 'output', name: string): ServingError {
  return new ServingError(
    'UNIMPLEMENTED',
    `${what} '${name}' asks for a shared memory region, which this server does not offer; send the data in the request`,
    {
      reason: 'shared_memory_unsupported',
    },
  );
}

/** Where binary data of the inputs is taken from, one after the other. */
interface Tail {
  readonly bytes: Uint8Array | undefined;
  takenBytes: number;
}

/** @throws ServingError naming the input; see {@link decodeInferJson} */
export function readInputs(items: readonly unknown[], tail: Uint8Array | undefined, exact: boolean, model: string): readonly Tensor[] {
  bounded(items.length, REQUEST_LIMITS.tensors, 'inputs');
  const source: Tail = { bytes: tail, takenBytes: 0 };
  const inputs: Tensor[] = [];
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    const input: JsonObject = isObject(item) ? item : {};
    try {
      inputs.push(readInput(input, source, exact, model));
    } catch (error) {
      throw error instanceof ServingError ? naming(error, input.name, i) : error;
    }
  }
  if (tail !== undefined && source.takenBytes < tail.length)
    throw invalid(`unexpected additional input data for model '${model}'`, 'binary_data_surplus');
  return inputs;
}

/** Errors whose texts, mostly Triton's, do not say which input they are about. */
const NAMELESS: ReadonlySet<string> = new Set([
  'json_invalid',
  'input_source_count',
  'binary_header_missing',
  'too_many',
  'input_shape_invalid',
]);

/** The same error, saying which input it is about where its text does not. */
function naming(error: ServingError, name: unknown, index: number): ServingError {
  if (!NAMELESS.has(error.reason)) return error;
  // What is no object at all gets Triton's text alone, which then says that nothing is set.
  if (typeof name !== 'string' && error.reason === 'input_source_count') return error;
  const { code, message, reason } = error;
  return new ServingError(code, `${message} for input ${typeof name === 'string' ? `'${name}'` : index}`, { reason });
}

function readInput(input: JsonObject, tail: Tail, exact: boolean, model: string): Tensor {
  const parameters: JsonObject | undefined = isObject(input.parameters) ? input.parameters : undefined;
  const binarySize = parameters?.binary_data_size;
  checkSource(input, parameters);
  const name = asString(member(input, 'name'), 'name');
  const datatype = asString(member(input, 'datatype'), 'datatype');
  if (!isDataType(datatype)) throw invalid(`invalid datatype for input ${name}`, 'input_datatype_unknown');
  const shape = readShape(asArray(member(input, 'shape'), 'shape'), exact);
  if (parameters?.shared_memory_region !== undefined) throw noSharedMemory('input', name);
  if (binarySize === undefined) return { name, datatype, shape, data: readData(name, datatype, shape, input.data, exact) };
  const size = readBinarySize(binarySize, exact);
  if (tail.bytes === undefined) {
    throw invalid(
      "must specify valid 'Infer-Header-Content-Length' in request header and 'binary_data_size' when passing inputs in binary data format",
      'binary_header_missing',
    );
  }
  const leftBytes = tail.bytes.length - tail.takenBytes;
  if (size > leftBytes) {
    const missing = BigInt(binarySize as number | bigint) - BigInt(leftBytes);
    throw invalid(`unexpected size for input '${name}', expecting ${missing} additional bytes for model '${model}'`, 'binary_data_short');
  }
  const data = tail.bytes.subarray(tail.takenBytes, tail.takenBytes + size);
  tail.takenBytes += size;
  return { name, datatype, shape, data };
}

function checkSource(input: JsonObject, parameters: JsonObject | undefined): void {
  const data = input.data !== undefined;
  const binary = parameters?.binary_data_size !== undefined;
  const shared = parameters?.shared_memory_region !== undefined;
  if (Number(data) + Number(binary) + Number(shared) === 1) return;
  const set = [data && "'data'", binary && "'binary_data_size'", shared && "'shared_memory_region'"].filter((name) => name !== false);
  throw invalid(SOURCES + (set.length === 0 ? 'no field is set' : `set ${set.join(' ')}`), 'input_source_count');
}

function readShape(items: readonly unknown[], exact: boolean): readonly number[] {
  bounded(items.length, REQUEST_LIMITS.rank, 'dimensions');
  for (const dim of items) {
    if (!isUnsigned(dim)) throw badField('shape', 'unsigned-integer', dim);
    if (typeof dim === 'number' && !exact && !Number.isSafeInteger(dim)) throw new InexactIntegerError();
    if (!Number.isSafeInteger(Number(dim))) throw invalid(`Unable to parse 'shape': dimension ${dim} is too large`, 'input_shape_invalid');
  }
  return items as readonly number[];
}

function readBinarySize(value: unknown, exact: boolean): number {
  if (!isUnsigned(value)) throw badField('binary_data_size', 'unsigned-integer', value);
  if (typeof value === 'number' && !exact && !Number.isSafeInteger(value)) throw new InexactIntegerError();
  return Number(value);
}

function readData(name: string, datatype: DataType, shape: readonly number[], data: unknown, exact: boolean): Uint8Array {
  try {
    return decodeJsonData(datatype, shape, data, exact);
  } catch (error) {
    if (error instanceof TensorFormatError)
      throw invalid(`Unable to parse 'data': ${error.message} for input '${name}'`, 'input_data_invalid');
    throw error;
  }
}
