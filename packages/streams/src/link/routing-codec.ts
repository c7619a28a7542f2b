/**
 * The routing as bytes. A model's configuration goes as the protobuf message that it is. Both ends work for what has
 * changed alone: a served model is encoded once in its life, and one that arrives again unchanged is the same object as
 * before, as gateways keep what they know of a model by its object.
 */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { ModelIndexEntry, ModelState, RoutedModel, Routing, ServedModel, TensorSpec } from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import { WireReader, WireWriter } from '@paceline/protocol/wire';
import { isDataType } from '@paceline/tensor';

const STATES: readonly ModelState[] = ['UNKNOWN', 'READY', 'UNAVAILABLE', 'LOADING', 'UNLOADING'];
const STARTED = 1;
const ALL_READY = 2;
const HAS_VERSION = 1;
const HAS_STATE = 2;
const HAS_REASON = 4;

const encoded = new WeakMap<ServedModel, Buffer>();

export function writeRouting(writer: WireWriter, routing: Routing): void {
  writer.varint(routing.epoch.number);
  writer.string(routing.epoch.owner);
  writer.varint(routing.generation);
  writer.u8((routing.started ? STARTED : 0) | (routing.allReady ? ALL_READY : 0));
  writer.varint(routing.models.length);
  for (const { model, generation, partition, healthy } of routing.models) {
    writer.bytes(encodedModel(model));
    writer.varint(generation);
    writer.varint(partition);
    writer.u8(healthy ? 1 : 0);
  }
  writer.varint(routing.index.length);
  for (const entry of routing.index) writeIndexEntry(writer, entry);
}

/** The models of the routing read last, by their bytes; one for each connected scheduler's messages. */
export class RoutedModels {
  #known = new Map<string, { readonly bytes: Buffer; readonly model: ServedModel }>();
  #next = new Map<string, { readonly bytes: Buffer; readonly model: ServedModel }>();

  /** @param key name, version and generation: another load is another object, whatever it looks like */
  resolve(key: string, bytes: Uint8Array): ServedModel {
    const before = this.#known.get(key);
    const known = before?.bytes.equals(bytes)
      ? before
      : { bytes: Buffer.from(bytes), model: readModel(new WireReader(Buffer.from(bytes))) };
    this.#next.set(key, known);
    return known.model;
  }

  /** The routing has been read: what it does not name is forgotten. */
  settle(): void {
    this.#known = this.#next;
    this.#next = new Map();
  }
}

export function readRouting(reader: WireReader, known: RoutedModels): Routing {
  const epoch = { number: reader.varint('epoch number'), owner: reader.string('epoch owner') };
  const generation = reader.varint('routing generation');
  const flags = reader.u8('routing flags');
  const models: RoutedModel[] = [];
  for (let left = reader.count('models'); left > 0; left--) {
    const bytes = reader.bytes('model');
    const load = reader.varint('generation');
    const partition = reader.varint('partition');
    const healthy = reader.u8('healthy') !== 0;
    const head = new WireReader(bytes);
    const key = `${head.string('model name')}/${head.string('model version')}/${load}`;
    models.push({ model: known.resolve(key, bytes), generation: load, partition, healthy });
  }
  const index: ModelIndexEntry[] = [];
  for (let left = reader.count('index'); left > 0; left--) index.push(readIndexEntry(reader));
  known.settle();
  return { epoch, generation, models, index, started: (flags & STARTED) !== 0, allReady: (flags & ALL_READY) !== 0 };
}

function encodedModel(model: ServedModel): Buffer {
  let bytes = encoded.get(model);
  if (!bytes) {
    const writer = new WireWriter();
    writeModel(writer, model);
    bytes = Buffer.concat(writer.finish());
    encoded.set(model, bytes);
  }
  return bytes;
}

function writeModel(writer: WireWriter, model: ServedModel): void {
  writer.string(model.name);
  writer.string(model.version);
  writer.bytes(toBinary(ModelConfigSchema, model.config));
  writer.varint(model.maxBatchSize);
  for (const specs of [model.inputs, model.outputs]) {
    writer.varint(specs.length);
    for (const spec of specs) writeSpec(writer, spec);
  }
  writer.varint(model.labels.size);
  for (const [output, labels] of model.labels) {
    writer.string(output);
    writer.varint(labels.length);
    for (const label of labels) writer.string(label);
  }
}

function readModel(reader: WireReader): ServedModel {
  const name = reader.string('model name');
  const version = reader.string('model version');
  const config = fromBinary(ModelConfigSchema, reader.bytes('model configuration'));
  const maxBatchSize = reader.varint('max batch size');
  const inputs = readSpecs(reader, 'inputs');
  const outputs = readSpecs(reader, 'outputs');
  const labels = new Map<string, readonly string[]>();
  for (let left = reader.count('labelled outputs'); left > 0; left--) {
    const output = reader.string('output');
    const texts: string[] = [];
    for (let more = reader.count('labels'); more > 0; more--) texts.push(reader.string('label'));
    labels.set(output, texts);
  }
  reader.end('model');
  return { name, version, config, maxBatchSize, inputs, outputs, labels };
}

function writeSpec(writer: WireWriter, spec: TensorSpec): void {
  writer.string(spec.name);
  writer.string(spec.datatype);
  writer.u8((spec.optional ? 1 : 0) | (spec.modelShape ? 2 : 0));
  writeShape(writer, spec.shape);
  if (spec.modelShape) writeShape(writer, spec.modelShape);
}

function readSpecs(reader: WireReader, what: string): TensorSpec[] {
  const specs: TensorSpec[] = [];
  for (let left = reader.count(what); left > 0; left--) {
    const name = reader.string('tensor name');
    const datatype = reader.string('tensor data type');
    if (!isDataType(datatype)) return reader.fail(`tensor data type: '${datatype}' is none`);
    const flags = reader.u8('tensor flags');
    const spec = { name, datatype, optional: (flags & 1) !== 0, shape: readShape(reader) };
    specs.push(flags & 2 ? { ...spec, modelShape: readShape(reader) } : spec);
  }
  return specs;
}

/** Dimensions are -1 or more. */
function writeShape(writer: WireWriter, shape: readonly number[]): void {
  writer.varint(shape.length);
  for (const dimension of shape) writer.varint(dimension + 1);
}

function readShape(reader: WireReader): number[] {
  const shape: number[] = [];
  for (let left = reader.count('rank'); left > 0; left--) shape.push(reader.varint('dimension') - 1);
  return shape;
}

function writeIndexEntry(writer: WireWriter, { name, version, state, reason }: ModelIndexEntry): void {
  writer.string(name);
  writer.u8((version === undefined ? 0 : HAS_VERSION) | (state === undefined ? 0 : HAS_STATE) | (reason === undefined ? 0 : HAS_REASON));
  if (version !== undefined) writer.string(version);
  if (state !== undefined) writer.u8(STATES.indexOf(state));
  if (reason !== undefined) writer.string(reason);
}

function readIndexEntry(reader: WireReader): ModelIndexEntry {
  const name = reader.string('model name');
  const flags = reader.u8('index flags');
  return {
    name,
    ...(flags & HAS_VERSION ? { version: reader.string('model version') } : {}),
    ...(flags & HAS_STATE ? { state: STATES[reader.u8('model state')] ?? reader.fail('model state: unknown') } : {}),
    ...(flags & HAS_REASON ? { reason: reader.string('reason') } : {}),
  };
}
