/**
 * A batch as an `execute` frame: each input once, its members' bytes one after the other along the batch dimension.
 * Bytes are only ever moved here, never looked at. Large batches go to the host's shared-memory file in one vectored
 * write, which is the only copy on this side.
 */
import { ServingError } from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { Batch } from '@paceline/worker-rpc';
import { EXECUTE_FIXED_BYTES, FRAME, MAX_BATCH_BYTES, padded, SHM_INPUTS, writeHeader } from '../host-protocol/frames.js';
import { headBytes, writeTensorHead } from '../host-protocol/messages.js';
import { SHM_THRESHOLD_BYTES } from '../host-protocol/shared-memory.js';
import type { SharedFile } from '../hosts/shared-file.js';
import type { ModelTensors } from './model-tensors.js';

interface GatheredInput {
  readonly index: number;
  readonly shape: readonly number[];
  readonly byteLength: number;
  readonly parts: readonly Uint8Array[];
}

export interface GatheredBatch {
  readonly inputs: readonly GatheredInput[];
  /** Indexes of the outputs that at least one member wants. */
  readonly wanted: readonly number[];
  readonly totalBytes: number;
}

export interface FrameTarget {
  readonly instance: number;
  readonly sequence: number;
  readonly slot: number;
  readonly flags: number;
  readonly shared: SharedFile | undefined;
  /** Whether {@link writeLargeInputs} has put the tensors into the shared file; undefined = it was not asked. */
  readonly written?: boolean;
}

/** @throws ServingError when the members do not fit together, which the lane should have seen to */
export function gather(batch: Batch, tensors: ModelTensors): GatheredBatch {
  const first = batch.members[0]!;
  if (!tensors.batches && batch.members.length > 1) {
    throw mismatch(batch, `${batch.members.length} requests in one batch, but the model does not batch`);
  }
  const inputs = first.inputs.map((input, k) => gatherInput(batch, tensors, input, k));
  let totalBytes = 0;
  for (const input of inputs) totalBytes += input.byteLength;
  if (totalBytes > MAX_BATCH_BYTES) {
    throw new ServingError(
      'INVALID_ARGUMENT',
      `the inputs of a batch for model '${batch.model}' are ${totalBytes} bytes, the most is ${MAX_BATCH_BYTES}`,
      { reason: 'batch_too_large' },
    );
  }
  return { inputs, wanted: wantedOutputs(batch, tensors), totalBytes };
}

function gatherInput(batch: Batch, tensors: ModelTensors, first: Tensor, position: number): GatheredInput {
  const index = tensors.inputIndex(first.name);
  if (batch.members.length === 1) {
    return { index, shape: tensors.modelShape(index, first.shape), byteLength: first.data.byteLength, parts: [first.data] };
  }
  const parts = new Array<Uint8Array>(batch.members.length);
  let byteLength = 0;
  for (let m = 0; m < parts.length; m++) {
    const member = batch.members[m]!;
    const tensor =
      member.inputs[position]?.name === first.name ? member.inputs[position] : member.inputs.find((t) => t.name === first.name);
    if (!tensor || member.inputs.length !== batch.members[0]!.inputs.length) {
      throw mismatch(batch, `request ${m} brings other inputs than request 0, which has '${first.name}'`);
    }
    if (!sameRowShape(tensor.shape, first.shape)) {
      throw mismatch(
        batch,
        `input '${first.name}' has shape [${tensor.shape.join(',')}] in request ${m} and [${first.shape.join(',')}] in request 0`,
      );
    }
    parts[m] = tensor.data;
    byteLength += tensor.data.byteLength;
  }
  return { index, shape: tensors.modelShape(index, [batch.rows, ...first.shape.slice(1)]), byteLength, parts };
}

function sameRowShape(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 1; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function wantedOutputs(batch: Batch, tensors: ModelTensors): number[] {
  const wanted = batch.members[0]!.outputs.map((name) => tensors.outputIndex(name));
  for (let m = 1; m < batch.members.length; m++) {
    const outputs = batch.members[m]!.outputs;
    if (outputs === batch.members[0]!.outputs) continue;
    for (const name of outputs) {
      const index = tensors.outputIndex(name);
      if (!wanted.includes(index)) wanted.push(index);
    }
  }
  return wanted;
}

/** The frame to send. Its tensor bytes have been copied once: into it, or into the shared-memory file. */
export function executeFrame(batch: GatheredBatch, target: FrameTarget): Buffer {
  let headEnd = EXECUTE_FIXED_BYTES + 4 * batch.wanted.length;
  for (const input of batch.inputs) headEnd += headBytes(input.shape.length);
  headEnd = padded(headEnd);
  const shared = target.written ?? (batch.totalBytes > SHM_THRESHOLD_BYTES && writeShared(batch, target));
  let length = headEnd;
  if (!shared) for (const input of batch.inputs) length += padded(input.byteLength);
  const frame = Buffer.allocUnsafe(length);
  writeHeader(frame, FRAME.execute, target.instance, target.sequence);
  frame.writeUInt32LE(target.flags | (shared ? SHM_INPUTS : 0), 16);
  frame.writeUInt32LE(target.slot, 20);
  frame.writeUInt32LE(batch.inputs.length, 24);
  frame.writeUInt32LE(batch.wanted.length, 28);
  let at = EXECUTE_FIXED_BYTES;
  for (const index of batch.wanted) at = frame.writeUInt32LE(index, at);
  for (const input of batch.inputs) at = writeTensorHead(frame, at, input.index, input.shape, input.byteLength);
  if (shared) return frame;
  at = headEnd;
  for (const input of batch.inputs) {
    let to = at;
    for (const part of input.parts) {
      frame.set(part, to);
      to += part.byteLength;
    }
    at += padded(input.byteLength);
  }
  return frame;
}

function writeShared(batch: GatheredBatch, target: FrameTarget): boolean {
  return target.shared?.writeInputs(target.slot, partsOf(batch), batch.totalBytes) ?? false;
}

/** For batches above {@link POOL_COPY_BYTES}: the copy that {@link executeFrame} would make, off this thread. */
export function writeLargeInputs(batch: GatheredBatch, shared: SharedFile, slot: number): Promise<boolean> {
  return shared.writeLargeInputs(slot, partsOf(batch), batch.totalBytes);
}

function partsOf(batch: GatheredBatch): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (const input of batch.inputs) for (const part of input.parts) if (part.byteLength > 0) parts.push(part);
  return parts;
}

function mismatch(batch: Batch, what: string): ServingError {
  return new ServingError('INTERNAL', `batch ${batch.id} of model '${batch.model}' does not fit together: ${what}`, {
    reason: 'batch_mismatch',
  });
}
