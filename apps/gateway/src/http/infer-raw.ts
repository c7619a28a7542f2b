/**
 * The raw binary request (`Inference-Header-Content-Length: 0`): the whole body is the data of the model's only input, and
 * its shape is deduced. The byte count is checked where every request is validated.
 */
import { requestPrefix } from '@paceline/core';
import { ServingError, type ServedModel } from '@paceline/protocol';
import { elementSize, encodeBytes, type Tensor } from '@paceline/tensor';
import type { DecodedInfer, InferTarget } from './infer-json.js';

function refuse(text: string): ServingError {
  return new ServingError('INVALID_ARGUMENT', requestPrefix('') + text, { reason: 'raw_input_undeducible' });
}

/** One row where the model batches; the one variable dimension takes what the others leave. */
function deduceShape(model: ServedModel, bytes: number): readonly number[] {
  const [spec] = model.inputs;
  if (spec === undefined) return [];
  const shape = model.maxBatchSize > 0 ? [1, ...spec.shape.slice(1)] : [...spec.shape];
  const variable = shape.indexOf(-1);
  if (variable < 0) return shape;
  if (shape.includes(-1, variable + 1))
    throw refuse(`The shape of the raw input '${spec.name}' can not be deduced because there are more than one variable-sized dimension`);
  shape[variable] = 1;
  const rowBytes = shape.reduce((a, b) => a * b, elementSize(spec.datatype));
  shape[variable] = rowBytes === 0 ? 0 : Math.floor(bytes / rowBytes);
  return shape;
}

/** @throws ServingError INVALID_ARGUMENT where the model's configuration leaves the shape open */
export function decodeRaw(body: Uint8Array, model: ServedModel, target: InferTarget): DecodedInfer {
  const [spec] = model.inputs;
  if (spec === undefined || model.inputs.length !== 1) {
    throw refuse(
      `Raw request must only have 1 input (found 1) to be deduced but got ${model.inputs.length} inputs in '${model.name}' model configuration`,
    );
  }
  let input: Tensor;
  if (spec.datatype === 'BYTES') {
    const row = spec.shape.slice(model.maxBatchSize > 0 ? 1 : 0);
    if (row.length !== 1 || row[0] !== 1) throw refuse(`For BYTE datatype raw input '${spec.name}', the model must have input shape [1]`);
    input = { name: spec.name, datatype: 'BYTES', shape: model.maxBatchSize > 0 ? [1, 1] : [1], data: encodeBytes([body]) };
  } else {
    input = { name: spec.name, datatype: spec.datatype, shape: deduceShape(model, body.length), data: body };
  }
  return {
    request: { modelName: target.model, modelVersion: target.version, id: '', parameters: {}, inputs: [input], outputs: undefined },
    form: { binary: true, byName: undefined },
  };
}
