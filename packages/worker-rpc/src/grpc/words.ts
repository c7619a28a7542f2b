/** The small words of the stream between a scheduler and a worker, on the wire: each pair writes and reads the same fields. */
import type { Device, Epoch } from '@paceline/protocol';
import {
  readRequestRef,
  readServingError,
  writeRequestRef,
  writeServingError,
  type WireReader,
  type WireWriter,
} from '@paceline/protocol/wire';
import type { Claimed, RunningRequest } from '../cluster-worker.js';
import type { BatchCompletion, InstanceEvent } from '../worker-link.js';

/** A load of a model version. */
export interface LoadName {
  readonly model: string;
  readonly version: string;
  readonly generation: number;
}

const OUTCOMES: readonly BatchCompletion['outcome'][] = ['ok', 'failed', 'lost', 'refused'];
const STARTED = 8;
const HAS_ERROR = 16;

export function writeList<T>(writer: WireWriter, items: readonly T[], write: (writer: WireWriter, item: T) => void): void {
  writer.varint(items.length);
  for (const item of items) write(writer, item);
}

export function readList<T>(reader: WireReader, what: string, read: (reader: WireReader) => T): T[] {
  const count = reader.count(what);
  const items: T[] = [];
  for (let i = 0; i < count; i++) items.push(read(reader));
  return items;
}

export const writeText = (writer: WireWriter, text: string): void => writer.string(text);
export const readText = (reader: WireReader): string => reader.string('text');

export function writeEpoch(writer: WireWriter, { number, owner }: Epoch): void {
  writer.varint(number);
  writer.string(owner);
}

export function readEpoch(reader: WireReader): Epoch {
  return { number: reader.varint('epoch'), owner: reader.string('epoch owner') };
}

export function writeLoadName(writer: WireWriter, { model, version, generation }: LoadName): void {
  writer.string(model);
  writer.string(version);
  writer.varint(generation);
}

export function readLoadName(reader: WireReader): LoadName {
  return { model: reader.string('model'), version: reader.string('version'), generation: reader.varint('generation') };
}

export function writeCompletion(writer: WireWriter, completion: BatchCompletion): void {
  const { error, started, outcome } = completion;
  writer.u8(OUTCOMES.indexOf(outcome) | (started ? STARTED : 0) | (error ? HAS_ERROR : 0));
  writer.varint(completion.batchId);
  writer.string(completion.instance);
  writer.f64(completion.computeInputNs);
  writer.f64(completion.computeInferNs);
  writer.f64(completion.computeOutputNs);
  if (error) writeServingError(writer, error);
}

export function readCompletion(reader: WireReader): BatchCompletion {
  const flags = reader.u8('completion flags');
  const outcome = OUTCOMES[flags & 7] ?? reader.fail(`outcome: ${flags & 7} is none`);
  return {
    batchId: reader.varint('batch'),
    instance: reader.string('instance'),
    outcome,
    started: (flags & STARTED) !== 0,
    computeInputNs: reader.f64('compute input time'),
    computeInferNs: reader.f64('compute infer time'),
    computeOutputNs: reader.f64('compute output time'),
    error: flags & HAS_ERROR ? readServingError(reader) : undefined,
  };
}

export function writeInstanceEvent(writer: WireWriter, event: InstanceEvent): void {
  writeLoadName(writer, event);
  writer.string(event.instance);
  writer.u8(event.state === 'ready' ? 1 : 0);
  writer.string(event.reason);
}

export function readInstanceEvent(reader: WireReader): InstanceEvent {
  const name = readLoadName(reader);
  const instance = reader.string('instance');
  const state = reader.u8('instance state') === 1 ? 'ready' : 'down';
  return { ...name, instance, state, reason: reader.string('reason') };
}

export function writeDevice(writer: WireWriter, device: Device): void {
  writer.string(device.id);
  writer.u8(device.kind === 'gpu' ? 1 : 0);
  writer.varint(device.memoryBytes);
}

export function readDevice(reader: WireReader): Device {
  const id = reader.string('device');
  return { id, kind: reader.u8('device kind') === 1 ? 'gpu' : 'cpu', memoryBytes: reader.varint('device memory') };
}

function writeRunning(writer: WireWriter, { ref, attempt }: RunningRequest): void {
  writeRequestRef(writer, ref);
  writer.varint(attempt);
}

function readRunning(reader: WireReader): RunningRequest {
  return { ref: readRequestRef(reader), attempt: reader.varint('attempt') };
}

export function writeClaimed(writer: WireWriter, claimed: Claimed): void {
  writer.u8(claimed.ok ? 1 : 0);
  if (claimed.ok) writeList(writer, claimed.running, writeRunning);
  else writeEpoch(writer, claimed.highest);
}

export function readClaimed(reader: WireReader): Claimed {
  if (reader.u8('claimed') === 1) return { ok: true, running: readList(reader, 'running requests', readRunning) };
  return { ok: false, highest: readEpoch(reader) };
}
