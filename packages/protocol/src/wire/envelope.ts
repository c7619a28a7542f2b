/** References to requests and the envelopes that carry requests, on the wire. */
import { timeoutAfter, type Envelope, type RequestRef } from '../infer.js';
import type { WireReader } from './reader.js';
import { readTensors, writeTensors } from './tensors.js';
import type { WireWriter } from './writer.js';

const HAS_ATTEMPT = 1;
const HAS_HELD_BYTES = 2;
const HAS_TRACE_PARENT = 4;
const HAS_REMAINING = 8;

export function writeRequestRef(writer: WireWriter, ref: RequestRef): void {
  writer.string(ref.gateway);
  writer.varint(ref.number);
}

export function readRequestRef(reader: WireReader): RequestRef {
  return { gateway: reader.string('gateway'), number: reader.varint('request number') };
}

/** Bytes of all inputs together. */
export function inputBytesOf(envelope: Envelope): number {
  let bytes = 0;
  for (const input of envelope.inputs) bytes += input.data.length;
  return bytes;
}

/**
 * @param heldBytes undefined = the tensors travel inline; else how many bytes of them stay with the writer. By default as
 * the envelope has it.
 * @param passedUs time since the envelope was made, by which its times are shortened: whole microseconds, not negative
 */
export function writeEnvelope(writer: WireWriter, envelope: Envelope, heldBytes = envelope.heldBytes, passedUs = 0): void {
  const { attempt, traceParent, remainingUs } = envelope;
  writer.u8(
    (attempt === undefined ? 0 : HAS_ATTEMPT) |
      (heldBytes === undefined ? 0 : HAS_HELD_BYTES) |
      (traceParent === undefined ? 0 : HAS_TRACE_PARENT) |
      (remainingUs === undefined ? 0 : HAS_REMAINING),
  );
  writeRequestRef(writer, envelope.ref);
  writer.string(envelope.model);
  writer.string(envelope.version);
  writer.string(envelope.clientId);
  writer.varint(envelope.rows);
  writer.varint(envelope.priority);
  writer.f64(timeoutAfter(envelope.timeoutUs, passedUs));
  if (remainingUs !== undefined) writer.f64(Math.max(0, remainingUs - passedUs));
  writer.string(envelope.shapeKey);
  writeTensors(writer, envelope.inputs, heldBytes !== undefined);
  writer.varint(envelope.outputs.length);
  for (const output of envelope.outputs) writer.string(output);
  if (attempt !== undefined) writer.varint(attempt);
  if (heldBytes !== undefined) writer.varint(heldBytes);
  if (traceParent !== undefined) writer.string(traceParent);
}

/** The tensors are views into what is read. */
export function readEnvelope(reader: WireReader): Envelope {
  const flags = reader.u8('envelope flags');
  const ref = readRequestRef(reader);
  const model = reader.string('model');
  const version = reader.string('version');
  const clientId = reader.string('client id');
  const rows = reader.varint('rows');
  const priority = reader.varint('priority');
  const timeoutUs = reader.f64('timeout');
  const remainingUs = flags & HAS_REMAINING ? reader.f64('remaining time') : undefined;
  const shapeKey = reader.string('shape key');
  const inputs = readTensors(reader);
  const count = reader.count('outputs');
  const outputs: string[] = [];
  for (let i = 0; i < count; i++) outputs.push(reader.string('output name'));
  const envelope =
    remainingUs === undefined
      ? { ref, model, version, clientId, rows, priority, timeoutUs, shapeKey, inputs, outputs }
      : { ref, model, version, clientId, rows, priority, timeoutUs, remainingUs, shapeKey, inputs, outputs };
  if ((flags & ~HAS_REMAINING) === 0) return envelope;
  return {
    ...envelope,
    ...(flags & HAS_ATTEMPT ? { attempt: reader.varint('attempt') } : {}),
    ...(flags & HAS_HELD_BYTES ? { heldBytes: reader.varint('held bytes') } : {}),
    ...(flags & HAS_TRACE_PARENT ? { traceParent: reader.string('trace parent') } : {}),
  };
}
