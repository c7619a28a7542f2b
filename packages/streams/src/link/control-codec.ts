/** The control messages between schedulers and gateways as bytes. The routing, which is large, has a file of its own. */
import type { Epoch, GatewayMessage, LanePressure, LoadParameter, RequestAttempt, SchedulerMessage } from '@paceline/protocol';
import { readServingError, WireReader, writeServingError, type WireWriter } from '@paceline/protocol/wire';
import { readCounters, writeCounters } from './counters-codec.js';
import { readRouting, writeRouting, type RoutedModels } from './routing-codec.js';

const SCHEDULER_KINDS = ['owns', 'released', 'pressure', 'routing', 'control-progress', 'control-result', 'statistics', 'lost'] as const;
const GATEWAY_KINDS = ['cancel', 'routed', 'control', 'statistics', 'overtaken'] as const;
const OPERATIONS = ['load', 'unload'] as const;
const Parameter = { STRING: 0, INTEGER: 1, FALSE: 2, TRUE: 3, BYTES: 4 } as const;

export function writeSchedulerMessage(writer: WireWriter, message: SchedulerMessage): void {
  writer.u8(SCHEDULER_KINDS.indexOf(message.kind));
  switch (message.kind) {
    case 'owns':
    case 'released':
      writer.varint(message.partition);
      writeEpoch(writer, message.epoch);
      return;
    case 'pressure':
      writer.varint(message.lanes.length);
      for (const lane of message.lanes) writePressure(writer, lane);
      return;
    case 'routing':
      writeRouting(writer, message.routing);
      return;
    case 'statistics':
      writer.string(message.process);
      writeCounters(writer, message.versions);
      return;
    case 'control-progress':
      writer.varint(message.id);
      writer.string(message.text);
      return;
    case 'control-result':
      writer.varint(message.id);
      writer.u8(message.error ? 1 : 0);
      if (message.error) writeServingError(writer, message.error);
      return;
    case 'lost':
      writer.varint(message.requests.length);
      for (const { number, attempt } of message.requests) {
        writer.varint(number);
        writer.varint(attempt);
      }
      return;
  }
}

/** @param known the models of routings read before; those that are unchanged stay the same objects */
export function readSchedulerMessage(bytes: Uint8Array, known: RoutedModels): SchedulerMessage {
  const reader = new WireReader(bytes);
  const message = readScheduler(reader, known);
  reader.end('control message');
  return message;
}

function readScheduler(reader: WireReader, known: RoutedModels): SchedulerMessage {
  const kind = one(reader, SCHEDULER_KINDS, 'kind of control message');
  switch (kind) {
    case 'owns':
    case 'released':
      return { kind, partition: reader.varint('partition'), epoch: readEpoch(reader) };
    case 'pressure':
      return { kind, lanes: many(reader, 'lanes', readPressure) };
    case 'routing':
      return { kind, routing: readRouting(reader, known) };
    case 'statistics':
      return { kind, process: reader.string('process'), versions: readCounters(reader) };
    case 'control-progress':
      return { kind, id: reader.varint('control id'), text: reader.string('progress') };
    case 'control-result':
      return { kind, id: reader.varint('control id'), error: reader.u8('has error') ? readServingError(reader) : undefined };
    case 'lost':
      return { kind, requests: many(reader, 'lost requests', readAttempt) };
  }
}

export function writeGatewayMessage(writer: WireWriter, message: GatewayMessage): void {
  writer.u8(GATEWAY_KINDS.indexOf(message.kind));
  switch (message.kind) {
    case 'cancel':
      writer.varint(message.number);
      writer.string(message.model);
      writer.string(message.version);
      return;
    case 'routed':
      writeEpoch(writer, message.epoch);
      writer.varint(message.generation);
      return;
    case 'statistics':
      writeCounters(writer, message.versions);
      return;
    case 'overtaken':
      writer.varint(message.partition);
      writeEpoch(writer, message.epoch);
      return;
    case 'control': {
      const parameters = Object.entries(message.parameters);
      writer.varint(message.id);
      writer.u8(OPERATIONS.indexOf(message.operation));
      writer.string(message.model);
      writer.u8(message.unloadDependents ? 1 : 0);
      writer.varint(parameters.length);
      for (const [name, value] of parameters) {
        writer.string(name);
        writeParameter(writer, value);
      }
      return;
    }
  }
}

export function readGatewayMessage(bytes: Uint8Array): GatewayMessage {
  const reader = new WireReader(bytes);
  const message = readGateway(reader);
  reader.end('control message');
  return message;
}

function readGateway(reader: WireReader): GatewayMessage {
  const kind = one(reader, GATEWAY_KINDS, 'kind of control message');
  switch (kind) {
    case 'cancel':
      return { kind, number: reader.varint('request number'), model: reader.string('model'), version: reader.string('version') };
    case 'routed':
      return { kind, epoch: readEpoch(reader), generation: reader.varint('routing generation') };
    case 'statistics':
      return { kind, versions: readCounters(reader) };
    case 'overtaken':
      return { kind, partition: reader.varint('partition'), epoch: readEpoch(reader) };
    case 'control': {
      const id = reader.varint('control id');
      const operation = one(reader, OPERATIONS, 'operation');
      const model = reader.string('model');
      const unloadDependents = reader.u8('unload dependents') !== 0;
      const parameters = many(reader, 'parameters', () => [reader.string('parameter name'), readParameter(reader)] as const);
      return { kind, id, operation, model, unloadDependents, parameters: Object.fromEntries(parameters) };
    }
  }
}

function writeEpoch(writer: WireWriter, epoch: Epoch): void {
  writer.varint(epoch.number);
  writer.string(epoch.owner);
}

function readEpoch(reader: WireReader): Epoch {
  return { number: reader.varint('epoch number'), owner: reader.string('epoch owner') };
}

function readAttempt(reader: WireReader): RequestAttempt {
  return { number: reader.varint('request number'), attempt: reader.varint('attempt') };
}

function writePressure(writer: WireWriter, lane: LanePressure): void {
  writer.string(lane.model);
  writer.string(lane.version);
  writer.f64(lane.queued);
  writer.f64(lane.maxQueued);
  writer.f64(lane.expectedWaitUs);
}

function readPressure(reader: WireReader): LanePressure {
  return {
    model: reader.string('model'),
    version: reader.string('version'),
    queued: reader.f64('queued'),
    maxQueued: reader.f64('most queued'),
    expectedWaitUs: reader.f64('expected wait'),
  };
}

function writeParameter(writer: WireWriter, value: LoadParameter): void {
  if (typeof value === 'string') {
    writer.u8(Parameter.STRING);
    writer.string(value);
  } else if (typeof value === 'bigint') {
    writer.u8(Parameter.INTEGER);
    writer.string(String(value));
  } else if (typeof value === 'boolean') {
    writer.u8(value ? Parameter.TRUE : Parameter.FALSE);
  } else {
    writer.u8(Parameter.BYTES);
    writer.bytes(value);
  }
}

function readParameter(reader: WireReader): LoadParameter {
  const type = reader.u8('parameter type');
  switch (type) {
    case Parameter.STRING:
      return reader.string('parameter');
    case Parameter.INTEGER: {
      const text = reader.string('parameter');
      return /^-?\d{1,40}$/.test(text) ? BigInt(text) : reader.fail('parameter: not an integer');
    }
    case Parameter.TRUE:
    case Parameter.FALSE:
      return type === Parameter.TRUE;
    case Parameter.BYTES:
      return reader.bytes('parameter');
    default:
      return reader.fail(`parameter type: ${type} is none`);
  }
}

function one<T extends string>(reader: WireReader, names: readonly T[], what: string): T {
  const index = reader.u8(what);
  return names[index] ?? reader.fail(`${what}: ${index} is none`);
}

function many<T>(reader: WireReader, what: string, read: (reader: WireReader) => T): T[] {
  const count = reader.count(what);
  return Array.from({ length: count }, () => read(reader));
}
