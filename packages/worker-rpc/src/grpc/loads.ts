/** What a worker is given to load, what it reports and what it announces, on the wire. */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { TensorSpec } from '@paceline/protocol';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';
import { readTensors, writeTensors, type WireReader, type WireWriter } from '@paceline/protocol/wire';
import { isDataType } from '@paceline/tensor';
import type { ModelAnnouncement, WorkerHello } from '../cluster-worker.js';
import type { LoadReport, LoadSpec, WarmupSample } from '../worker-link.js';
import {
  readDevice,
  readEpoch,
  readList,
  readLoadName,
  readText,
  writeDevice,
  writeEpoch,
  writeList,
  writeLoadName,
  writeText,
} from './words.js';

const STATES: readonly ModelAnnouncement['state'][] = ['loaded', 'active', 'retiring'];
const OPTIONAL = 1;
const HAS_MODEL_SHAPE = 2;

export function writeLoadSpec(writer: WireWriter, spec: LoadSpec): void {
  writeLoadName(writer, spec);
  writer.bytes(toBinary(ModelConfigSchema, spec.config));
  writer.string(spec.modelPath);
  // 0 = none.
  writer.varint(spec.partition === undefined ? 0 : spec.partition + 1);
  writeList(writer, spec.inputs, writeTensorSpec);
  writeList(writer, spec.outputs, writeTensorSpec);
  writer.u8(spec.warmup ? 1 : 0);
  if (spec.warmup) writeList(writer, spec.warmup, writeWarmupSample);
}

export function readLoadSpec(reader: WireReader): LoadSpec {
  const name = readLoadName(reader);
  const config = readConfig(reader);
  const modelPath = reader.string('model path');
  const partition = reader.varint('partition');
  const spec = {
    ...name,
    config,
    modelPath,
    ...(partition > 0 && { partition: partition - 1 }),
    inputs: readList(reader, 'inputs', readTensorSpec),
    outputs: readList(reader, 'outputs', readTensorSpec),
  };
  return reader.u8('warmup') === 1 ? { ...spec, warmup: readList(reader, 'warmup samples', readWarmupSample) } : spec;
}

export function writeLoadReport(writer: WireWriter, report: LoadReport): void {
  writeList(writer, report.instances, writeText);
  writeList(writer, report.devices ?? [], writeText);
  writeList(writer, report.warnings, writeText);
  writer.f64(report.durationMs);
  writer.u8(report.warmup ? 1 : 0);
  if (!report.warmup) return;
  writer.varint(report.warmup.samples);
  writer.varint(report.warmup.runs);
  writer.f64(report.warmup.durationMs);
}

export function readLoadReport(reader: WireReader): LoadReport {
  const instances = readList(reader, 'instances', readText);
  const report = {
    instances,
    ...readDevices(reader, instances),
    warnings: readList(reader, 'warnings', readText),
    durationMs: reader.f64('duration'),
  };
  if (reader.u8('warmup') === 0) return report;
  const warmup = { samples: reader.varint('samples'), runs: reader.varint('runs'), durationMs: reader.f64('duration') };
  return { ...report, warmup };
}

export function writeAnnouncement(writer: WireWriter, model: ModelAnnouncement): void {
  const { warmup: _, ...spec } = model.spec;
  writeLoadSpec(writer, spec);
  writer.string(model.fingerprint);
  writeList(writer, model.instances, writeText);
  writeList(writer, model.devices ?? [], writeText);
  writeList(writer, model.ready, writeText);
  writer.u8(STATES.indexOf(model.state));
  writer.varint(Math.round(model.memoryBytes));
}

export function readAnnouncement(reader: WireReader): ModelAnnouncement {
  const spec = readLoadSpec(reader);
  const fingerprint = reader.string('fingerprint');
  const instances = readList(reader, 'instances', readText);
  const devices = readDevices(reader, instances);
  const ready = readList(reader, 'ready instances', readText);
  const number = reader.u8('load state');
  const state = STATES[number] ?? reader.fail(`load state: ${number} is none`);
  return { spec, fingerprint, instances, ...devices, ready, state, memoryBytes: reader.varint('memory') };
}

/** None, or one for each instance. */
function readDevices(reader: WireReader, instances: readonly string[]): { devices?: readonly string[] } {
  const devices = readList(reader, 'devices', readText);
  if (devices.length === 0) return {};
  return devices.length === instances.length ? { devices } : reader.fail(`devices: ${devices.length} for ${instances.length} instances`);
}

export function writeHello(writer: WireWriter, hello: WorkerHello): void {
  writer.string(hello.worker);
  writer.u8(hello.draining ? 1 : 0);
  writeList(writer, hello.devices, writeDevice);
  writeList(writer, hello.models, writeAnnouncement);
  writeList(writer, hello.epochs, (to, { partition, epoch }) => {
    to.varint(partition);
    writeEpoch(to, epoch);
  });
}

export function readHello(reader: WireReader): WorkerHello {
  return {
    worker: reader.string('worker'),
    draining: reader.u8('draining') === 1,
    devices: readList(reader, 'devices', readDevice),
    models: readList(reader, 'models', readAnnouncement),
    epochs: readList(reader, 'epochs', (from) => ({ partition: from.varint('partition'), epoch: readEpoch(from) })),
  };
}

function readConfig(reader: WireReader): ModelConfig {
  const bytes = reader.bytes('model configuration');
  try {
    return fromBinary(ModelConfigSchema, bytes);
  } catch (error) {
    return reader.fail(`model configuration: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Dimensions are written one higher: -1 stands for a variable one. */
const writeDimension = (writer: WireWriter, dimension: number): void => writer.varint(dimension + 1);
const readDimension = (reader: WireReader): number => reader.varint('dimension') - 1;

function writeTensorSpec(writer: WireWriter, spec: TensorSpec): void {
  writer.u8((spec.optional ? OPTIONAL : 0) | (spec.modelShape ? HAS_MODEL_SHAPE : 0));
  writer.string(spec.name);
  writer.string(spec.datatype);
  writeList(writer, spec.shape, writeDimension);
  if (spec.modelShape) writeList(writer, spec.modelShape, writeDimension);
}

function readTensorSpec(reader: WireReader): TensorSpec {
  const flags = reader.u8('tensor flags');
  const name = reader.string('tensor name');
  const datatype = reader.string('data type');
  if (!isDataType(datatype)) return reader.fail(`data type: '${datatype}' is none`);
  const shape = readList(reader, 'dimensions', readDimension);
  const spec = { name, datatype, shape, optional: (flags & OPTIONAL) !== 0 };
  return flags & HAS_MODEL_SHAPE ? { ...spec, modelShape: readList(reader, 'dimensions', readDimension) } : spec;
}

function writeWarmupSample(writer: WireWriter, sample: WarmupSample): void {
  writer.string(sample.name);
  writer.varint(sample.count);
  writer.varint(sample.rows);
  writeTensors(writer, sample.inputs);
}

function readWarmupSample(reader: WireReader): WarmupSample {
  return {
    name: reader.string('sample'),
    count: reader.varint('count'),
    rows: reader.varint('rows'),
    inputs: readTensors(reader),
  };
}
