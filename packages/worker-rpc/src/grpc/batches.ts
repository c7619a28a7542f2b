/**
 * Batches on the wire. Small tensors travel with their bytes, held ones as names, types and shapes. What is read keeps
 * the message alive: tensors are views into it.
 */
import { readRequestRef, readTensors, writeRequestRef, writeTensors, type WireReader, type WireWriter } from '@paceline/protocol/wire';
import type { FencedBatch } from '../cluster-worker.js';
import type { BatchMember } from '../worker-link.js';
import { readEpoch, readLoadName, writeEpoch, writeLoadName } from './words.js';

const HAS_ATTEMPT = 1;
const HAS_HELD_BYTES = 2;
const HAS_TRACE_PARENT = 4;

export function writeFencedBatch(writer: WireWriter, { partition, epoch, batch }: FencedBatch): void {
  writer.varint(partition);
  writeEpoch(writer, epoch);
  writer.varint(batch.id);
  writeLoadName(writer, batch);
  writer.string(batch.instance);
  writer.varint(batch.rows);
  writer.u8(batch.quarantine ? 1 : 0);
  writer.varint(batch.members.length);
  for (const member of batch.members) writeMember(writer, member);
}

export function readFencedBatch(reader: WireReader): FencedBatch {
  const partition = reader.varint('partition');
  const epoch = readEpoch(reader);
  const id = reader.varint('batch');
  const { model, version, generation } = readLoadName(reader);
  const instance = reader.string('instance');
  const rows = reader.varint('rows');
  const quarantine = reader.u8('quarantine') === 1;
  const count = reader.count('members');
  const members: BatchMember[] = [];
  for (let i = 0; i < count; i++) members.push(readMember(reader));
  const batch = { id, model, version, generation, instance, rows, members, ...(quarantine && { quarantine }) };
  return { partition, epoch, batch };
}

function writeMember(writer: WireWriter, member: BatchMember): void {
  const { attempt, heldBytes, traceParent, outputs } = member;
  writer.u8(
    (attempt === undefined ? 0 : HAS_ATTEMPT) |
      (heldBytes === undefined ? 0 : HAS_HELD_BYTES) |
      (traceParent === undefined ? 0 : HAS_TRACE_PARENT),
  );
  writeRequestRef(writer, member.ref);
  writer.varint(member.rows);
  writer.f64(member.queueNs);
  writeTensors(writer, member.inputs, heldBytes !== undefined);
  writer.varint(outputs.length);
  for (const output of outputs) writer.string(output);
  if (attempt !== undefined) writer.varint(attempt);
  if (heldBytes !== undefined) writer.varint(heldBytes);
  if (traceParent !== undefined) writer.string(traceParent);
}

function readMember(reader: WireReader): BatchMember {
  const flags = reader.u8('member flags');
  const ref = readRequestRef(reader);
  const rows = reader.varint('rows');
  const queueNs = reader.f64('queue time');
  const inputs = readTensors(reader);
  const count = reader.count('outputs');
  const outputs: string[] = [];
  for (let i = 0; i < count; i++) outputs.push(reader.string('output name'));
  const member = { ref, rows, inputs, outputs, queueNs };
  if (flags === 0) return member;
  return {
    ...member,
    ...(flags & HAS_ATTEMPT ? { attempt: reader.varint('attempt') } : {}),
    ...(flags & HAS_HELD_BYTES ? { heldBytes: reader.varint('held bytes') } : {}),
    ...(flags & HAS_TRACE_PARENT ? { traceParent: reader.string('trace parent') } : {}),
  };
}
