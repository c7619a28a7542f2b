/**
 * A `result` frame as the outputs of each member: only those it asked for, as views of the batch's output, cut along
 * the batch dimension. A member never receives rows that are not its own: an output without one row per row of the
 * batch is an error for every member.
 */
import { ServingError } from '@paceline/protocol';
import { elementSize, type Tensor } from '@paceline/tensor';
import type { Batch, BatchMember } from '@paceline/worker-rpc';
import { padded, RESULT_FIXED_BYTES, SHM_OUTPUTS } from '../host-protocol/frames.js';
import { headBytes, readTensorHead, type TensorHead } from '../host-protocol/messages.js';
import { POOL_COPY_BYTES, type SharedFile } from '../hosts/shared-file.js';
import type { ModelTensors } from './model-tensors.js';

interface BatchOutput {
  readonly head: TensorHead;
  readonly data: Buffer;
  /** BYTES only: offset of each row, and the end; made when first needed. */
  rowOffsets: readonly number[] | undefined;
}

export interface BatchOutputs {
  readonly byIndex: ReadonlyMap<number, BatchOutput>;
  /** Of the host, nanoseconds. */
  readonly inferNs: number;
  readonly layOutNs: number;
  /** Bytes that were copied out of shared memory. */
  readonly copiedBytes: number;
}

/** Reads the frame; the outputs are views of it, or of one buffer read from shared memory. */
export function readOutputs(frame: Buffer, shared: SharedFile | undefined): BatchOutputs {
  const listed = readHeads(frame);
  return outputsOf(frame, listed, listed.slot === undefined ? undefined : shared!.readOutputs(listed.slot, listed.totalBytes));
}

/** The same for what is better read by the thread pool; undefined where this result is not. */
export function readLargeOutputs(frame: Buffer, shared: SharedFile | undefined): Promise<BatchOutputs> | undefined {
  const listed = readHeads(frame);
  if (listed.slot === undefined || listed.totalBytes <= POOL_COPY_BYTES) return undefined;
  return shared!.readLargeOutputs(listed.slot, listed.totalBytes).then((data) => outputsOf(frame, listed, data));
}

interface ListedOutputs {
  readonly heads: readonly TensorHead[];
  readonly totalBytes: number;
  /** Of the shared file, where the tensors lie there. */
  readonly slot: number | undefined;
  /** Where they begin in the frame otherwise. */
  readonly inlineAt: number;
}

function readHeads(frame: Buffer): ListedOutputs {
  const heads = new Array<TensorHead>(frame.readUInt32LE(24));
  let at = RESULT_FIXED_BYTES;
  let total = 0;
  for (let i = 0; i < heads.length; i++) {
    heads[i] = readTensorHead(frame, at);
    at += headBytes(heads[i]!.shape.length);
    total += heads[i]!.byteLength;
  }
  const byShm = (frame.readUInt32LE(16) & SHM_OUTPUTS) !== 0;
  return { heads, totalBytes: total, slot: byShm ? frame.readUInt32LE(20) : undefined, inlineAt: padded(at) };
}

/** @param copied the tensors, where they came through the shared file */
function outputsOf(frame: Buffer, { heads, totalBytes, inlineAt }: ListedOutputs, copied: Buffer | undefined): BatchOutputs {
  const source = copied ?? frame;
  let at = copied ? 0 : inlineAt;
  const byIndex = new Map<number, BatchOutput>();
  for (const head of heads) {
    byIndex.set(head.index, { head, data: source.subarray(at, at + head.byteLength), rowOffsets: undefined });
    at += copied ? head.byteLength : padded(head.byteLength);
  }
  return { byIndex, inferNs: frame.readDoubleLE(40), layOutNs: frame.readDoubleLE(48), copiedBytes: copied ? totalBytes : 0 };
}

/**
 * The outputs of every member, in the order of `batch.members`.
 * @throws ServingError INTERNAL when an output cannot be cut into the members' rows
 */
export function scatter(batch: Batch, outputs: BatchOutputs, tensors: ModelTensors): Tensor[][] {
  if (tensors.batches) {
    for (const { head } of outputs.byIndex.values()) {
      if (head.shape[0] !== batch.rows) {
        throw new ServingError(
          'INTERNAL',
          `output '${tensors.outputs[head.index]!.name}' of model '${batch.model}' has shape [${head.shape.join(',')}], expected a first dimension of ${batch.rows}, the batch size: the model does not keep its rows apart`,
          { reason: 'output_not_batched' },
        );
      }
    }
  }
  let row = 0;
  return batch.members.map((member) => {
    const own = member.outputs.map((name) => memberOutput(member, name, row, batch.rows, outputs, tensors));
    row += member.rows;
    return own;
  });
}

function memberOutput(
  member: BatchMember,
  name: string,
  row: number,
  batchRows: number,
  outputs: BatchOutputs,
  tensors: ModelTensors,
): Tensor {
  const index = tensors.outputIndex(name);
  const output = outputs.byIndex.get(index)!;
  const { datatype } = tensors.outputs[index]!;
  const { shape } = output.head;
  if (!tensors.batches || member.rows === batchRows) {
    return { name, datatype, shape: tensors.clientShape(index, shape), data: output.data };
  }
  let begin: number;
  let end: number;
  if (elementSize(datatype) === 0) {
    output.rowOffsets ??= bytesRowOffsets(output.data, shape);
    begin = output.rowOffsets[row]!;
    end = output.rowOffsets[row + member.rows]!;
  } else {
    const rowBytes = output.head.byteLength / batchRows;
    begin = row * rowBytes;
    end = begin + member.rows * rowBytes;
  }
  const rows = tensors.clientShape(index, [member.rows, ...shape.slice(1)]);
  return { name, datatype, shape: rows, data: output.data.subarray(begin, end) };
}

function bytesRowOffsets(data: Buffer, shape: readonly number[]): number[] {
  let perRow = 1;
  for (let i = 1; i < shape.length; i++) perRow *= shape[i]!;
  const offsets = new Array<number>(shape[0]! + 1);
  let at = 0;
  for (let row = 0; row < shape[0]!; row++) {
    offsets[row] = at;
    for (let i = 0; i < perRow; i++) at += 4 + data.readUInt32LE(at);
  }
  offsets[shape[0]!] = at;
  return offsets;
}
