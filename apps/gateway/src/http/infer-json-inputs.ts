/** The `inputs` of an inference request: JSON data converted, binary data cut out of the tail without copying. */
import { ServingError } from '@paceline/protocol';
import { decodeJsonData, InexactIntegerError, isDataType, TensorFormatError, type DataType, type Tensor } from '@paceline/tensor';
import { asArray, asString, badField, isObject, isUnsigned, member, type JsonObject } from './json-access.js';

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

/** @throws ServingError naming the input; see {@link decodeInferJson} */
export function readInputs(items: readonly unknown[], tail: Uint8Array | undefined, exact: boolean, model: string): readonly Tensor[] {
  const inputs: Tensor[] = [];
  const available = tail?.length ?? 0;
  let taken = 0;
  for (const item of items) {
    const input: JsonObject = isObject(item) ? item : {};
    const parameters: JsonObject | undefined = isObject(input.parameters) ? input.parameters : undefined;
    const binarySize = parameters?.binary_data_size;
    checkSource(input, parameters);
    const name = asString(member(input, 'name'), 'name');
    const datatype = asString(member(input, 'datatype'), 'datatype');
    if (!isDataType(datatype)) throw invalid(`invalid datatype for input ${name}`, 'input_datatype_unknown');
    const shape = readShape(asArray(member(input, 'shape'), 'shape'), exact);
    if (parameters?.shared_memory_region !== undefined) throw noSharedMemory('input', name);
    if (binarySize === undefined) {
      inputs.push({ name, datatype, shape, data: readData(name, datatype, shape, input.data, exact) });
      continue;
    }
    const size = readBinarySize(binarySize, exact);
    if (tail === undefined) {
      throw invalid(
        "must specify valid 'Infer-Header-Content-Length' in request header and 'binary_data_size' when passing inputs in binary data format",
        'binary_header_missing',
      );
    }
    if (size > available - taken) {
      const missing = BigInt(binarySize as number | bigint) - BigInt(available - taken);
      throw invalid(`unexpected size for input '${name}', expecting ${missing} additional bytes for model '${model}'`, 'binary_data_short');
    }
    inputs.push({ name, datatype, shape, data: tail.subarray(taken, taken + size) });
    taken += size;
  }
  if (taken < available) throw invalid(`unexpected additional input data for model '${model}'`, 'binary_data_surplus');
  return inputs;
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
