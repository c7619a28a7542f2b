/**
 * Stop 1 of the request path for gRPC: a decoded ModelInferRequest becomes an InferRequest. It finds each input's data,
 * raw or typed, and checks what only gRPC can get wrong; names, counts, shapes and sizes are judged behind it for every
 * protocol alike. Raw data stays a view of the message.
 */
import {
  contentFieldOf,
  contentsToBytes,
  countContents,
  ServingError,
  type InferRequest,
  type RequestedOutput,
  type ServedModel,
  type WireInferRequest,
  type WireInput,
  type WireOutput,
} from '@paceline/protocol';
import { isDataType, type DataType, type Tensor } from '@paceline/tensor';
import { checkId } from '../infer/request-limits.js';
import { refuseSharedMemory, toParameters } from './request-parameters.js';

/** Names of the values each field of InferTensorContents holds, by field number. */
const FIELD_TYPES = ['', 'BOOL', 'INT32', 'INT64', 'UINT32', 'UINT64', 'FP32', 'FP64', 'BYTES'] as const;

const refuse = (message: string, reason: string): never => {
  throw new ServingError('INVALID_ARGUMENT', message, { reason });
};

/** @param model the version that answers. @throws ServingError INVALID_ARGUMENT naming the input. */
export function toInferRequest(wire: WireInferRequest, model: ServedModel): InferRequest {
  checkId(wire.id);
  const parameters = toParameters(wire.parameters);
  const raw = wire.rawInputContents;
  const { length } = wire.inputs;
  const inputs = new Array<Tensor>(length);
  for (let i = 0; i < length; i += 1) {
    const input = wire.inputs[i]!;
    refuseSharedMemory(input.parameters, input.name);
    const datatype = datatypeOf(input, wire.id, model);
    const data = raw.length > 0 ? rawData(input, raw[i], model) : typedData(wire.message, input, datatype, model);
    inputs[i] = { name: input.name, datatype, shape: input.shape, data };
  }
  if (raw.length > length) {
    refuse(
      `expected one raw_input_contents for each of ${length} inputs but got ${raw.length} for model '${model.name}'`,
      'surplus_input_data',
    );
  }
  return {
    modelName: model.name,
    modelVersion: model.version,
    id: wire.id,
    parameters,
    inputs,
    outputs: wire.outputs.length === 0 ? undefined : wire.outputs.map(toRequestedOutput),
  };
}

function datatypeOf(input: WireInput, id: string, model: ServedModel): DataType {
  if (isDataType(input.datatype)) return input.datatype;
  const spec = model.inputs.find(({ name }) => name === input.name);
  if (!spec) return refuse(`unexpected inference input '${input.name}' for model '${model.name}'`, 'unknown_input');
  return refuse(
    `[request id: ${id === '' ? '<id_unknown>' : id}] inference input '${input.name}' data-type is '${input.datatype}', but model '${model.name}' expects '${spec.datatype}'`,
    'input_datatype_mismatch',
  );
}

function rawData(input: WireInput, data: Uint8Array | undefined, model: ServedModel): Uint8Array {
  if (input.contents) {
    refuse(
      `contents field must not be specified when using raw_input_contents for '${input.name}' for model '${model.name}'`,
      'mixed_input_data',
    );
  }
  return data ?? noData(input, model);
}

function typedData(message: Uint8Array, input: WireInput, datatype: DataType, model: ServedModel): Uint8Array {
  const expectsNothing = input.shape.includes(0);
  if (!input.contents) return expectsNothing ? new Uint8Array(0) : noData(input, model);
  const counts = countContents(message, input.contents);
  const wanted = contentFieldOf(datatype);
  let found = false;
  for (let field = 1; field < FIELD_TYPES.length; field += 1) {
    if (counts[field] === 0) continue;
    const place = `unexpected explicit tensor data for input tensor '${input.name}' for model '${model.name}'`;
    if (found) refuse(`${place}, binary data was already supplied.`, 'several_input_data');
    if (field !== wanted) refuse(`${place} of type '${FIELD_TYPES[field]!}', expected datatype '${datatype}'`, 'wrong_contents_field');
    found = true;
  }
  if (!found && !expectsNothing) return noData(input, model);
  return contentsToBytes(message, input.contents, counts, datatype, (index, value) =>
    refuse(
      `element ${index} of input tensor '${input.name}' for model '${model.name}' is ${value}, which datatype '${datatype}' cannot hold`,
      'value_out_of_range',
    ),
  );
}

function noData(input: WireInput, model: ServedModel): never {
  return refuse(`unable to find data for input tensor '${input.name}' for model '${model.name}' in request.`, 'missing_input_data');
}

function toRequestedOutput({ name, parameters }: WireOutput): RequestedOutput {
  if (parameters.size === 0) return { name, classification: 0 };
  refuseSharedMemory(parameters, name);
  const classification = parameters.get('classification');
  if (classification === undefined) return { name, classification: 0 };
  if (typeof classification !== 'bigint')
    return refuse(`invalid value type for 'classification' parameter of output '${name}', expected int64_param.`, 'invalid_parameter');
  if (classification < 1n || classification > 0x7fff_ffffn)
    return refuse(
      `invalid value for 'classification' parameter of output '${name}': ${classification}, expected a count of at least 1`,
      'invalid_parameter',
    );
  return { name, classification: Number(classification) };
}
