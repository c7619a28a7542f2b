/** Reads what an ONNX file says about itself: inputs, outputs, versions, and where its external weights lie. */
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { ServingError, type ModelFileDescription, type ModelFileTensor } from '@paceline/protocol';
import { ModelSchema, type Graph, type Model, type ValueInfo } from '../gen/onnx_pb.js';
import { safeExistingFile } from '../safe-path.js';
import { elementDataType, elementTypeName } from './element-type.js';
import { MalformedFileError, siftModel } from './sieve.js';

function describeValue(value: ValueInfo, hasDefault: boolean): ModelFileTensor {
  const type = value.type?.value;
  if (type?.case !== 'tensorType') {
    return {
      name: value.name,
      datatype: undefined,
      elementType: type?.case?.replace('Type', '') ?? 'no type',
      shape: undefined,
      hasDefault,
    };
  }
  const { elemType, shape } = type.value;
  const dims = shape?.dim.map(({ value: dim }) => (dim.case === 'dimValue' && dim.value >= 0n ? Number(dim.value) : -1));
  return { name: value.name, datatype: elementDataType(elemType), elementType: elementTypeName(elemType), shape: dims, hasDefault };
}

/** Locations of external data, of all graphs. */
function externalLocations(model: Model): Set<string> {
  const locations = new Set<string>();
  const graphs: Pick<Graph, 'node' | 'initializer'>[] = model.functions.map(({ node }) => ({ node, initializer: [] }));
  if (model.graph) graphs.push(model.graph);
  for (let graph = graphs.pop(); graph !== undefined; graph = graphs.pop()) {
    const tensors = [...graph.initializer];
    for (const attribute of graph.node.flatMap((node) => node.attribute)) {
      tensors.push(...attribute.tensors, ...(attribute.t ? [attribute.t] : []));
      graphs.push(...attribute.graphs, ...(attribute.g ? [attribute.g] : []));
    }
    for (const entry of tensors.flatMap((tensor) => tensor.externalData)) if (entry.key === 'location') locations.add(entry.value);
  }
  return locations;
}

/** External weights must be files below the folder of the model file. @throws ServingError INVALID_ARGUMENT */
async function checkExternalData(model: Model, path: string): Promise<void> {
  for (const location of externalLocations(model)) {
    const file = await safeExistingFile(dirname(path), location, 'external data location');
    if (file === undefined) throw new ServingError('INVALID_ARGUMENT', `external data file '${location}' of the model does not exist`);
  }
}

/**
 * @param path absolute, of the ONNX file itself
 * @param name how messages call it, e.g. `resnet/1/model.onnx`
 * @throws ServingError INTERNAL when the file cannot be read, INVALID_ARGUMENT when it is no ONNX model or names external data it must not
 */
export async function describeOnnxFile(path: string, name: string): Promise<ModelFileDescription> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw new ServingError('INTERNAL', `failed to open file ${name}`, { reason: 'model_file', cause });
  });
  let model: Model;
  let operators: readonly string[];
  try {
    const { size } = await file.stat();
    const sifted = await siftModel(file, size);
    model = fromBinary(ModelSchema, sifted.description, { readUnknownFields: false });
    operators = sifted.operators;
  } catch (cause) {
    const why = cause instanceof MalformedFileError ? `: ${cause.message}` : '';
    throw new ServingError('INVALID_ARGUMENT', `Load model from ${name} failed:Protobuf parsing failed${why}.`, {
      reason: 'model_file',
      cause,
    });
  } finally {
    await file.close();
  }
  const { graph } = model;
  if (graph === undefined)
    throw new ServingError('INVALID_ARGUMENT', `Load model from ${name} failed: ModelProto does not have a graph.`, {
      reason: 'model_file',
    });
  await checkExternalData(model, path);
  const defaults = new Set(graph.initializer.map((tensor) => tensor.name));
  return {
    inputs: graph.input.map((value) => describeValue(value, defaults.has(value.name))),
    outputs: graph.output.map((value) => describeValue(value, false)),
    irVersion: Number(model.irVersion),
    opsets: Object.fromEntries(model.opsetImport.map(({ domain, version }) => [domain, Number(version)])),
    producer: model.producerName,
    metadata: Object.fromEntries(model.metadataProps.map(({ key, value }) => [key, value])),
    operators,
  };
}
