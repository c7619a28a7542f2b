/** The JSON bodies of the control frames, and the tensor heads that `execute` and `result` have in common. */
import type { SimulatedAccelerator } from '@paceline/core';
import type { ErrorCode } from '@paceline/protocol';
import type { DataType } from '@paceline/tensor';

export interface HostTensorSpec {
  readonly name: string;
  readonly datatype: DataType;
  /** As the model takes or makes it, the batch dimension included; -1 = any length. */
  readonly shape: readonly number[];
}

/** ONNX Runtime session options, in the words of its JavaScript API. */
export interface SessionOptions {
  readonly intraOpNumThreads: number;
  readonly interOpNumThreads: number;
  readonly executionMode: 'sequential' | 'parallel';
  readonly graphOptimizationLevel: 'disabled' | 'basic' | 'extended' | 'all';
  readonly enableCpuMemArena: boolean;
  readonly enableMemPattern: boolean;
  /** Session configuration entries; values are strings. */
  readonly extra: Readonly<Record<string, string>>;
  /** Absent = the processor. One that cannot be had fails the load, whatever stands behind it. */
  readonly executionProviders?: readonly { readonly name: 'cuda' | 'tensorrt'; readonly deviceId: number }[];
}

/** What runs the model, and how. */
export type LoadBackend =
  | { readonly backend: 'onnxruntime'; readonly modelPath: string; readonly options: SessionOptions }
  /** `batches`: the first dimension of every tensor is the batch. `seed` starts the pseudo-random numbers of this instance: a whole number below 2^32. */
  | { readonly backend: 'simulated'; readonly accelerator: SimulatedAccelerator; readonly batches: boolean; readonly seed: number };

export type LoadMessage = LoadBackend & LoadTensors;

interface LoadTensors {
  /** Every input that an execute may name by index; unknown names never reach the runtime. */
  readonly inputs: readonly (HostTensorSpec & { readonly optional: boolean })[];
  readonly outputs: readonly HostTensorSpec[];
}

export interface LoadedMessage {
  /** How ONNX Runtime is called: `binding` skips its promise, `session` is the public API; `simulated` is none at all. */
  readonly api: 'binding' | 'session' | 'simulated';
}

export interface FailedMessage {
  readonly code: ErrorCode;
  readonly reason: string;
  readonly message: string;
}

/** Totals since the host began. */
export interface HostStatistics {
  /** Tensor bytes copied in user space on the way to the runtime, and on the way back. */
  readonly copiedInBytes: number;
  readonly copiedOutBytes: number;
  readonly executions: number;
  readonly rssBytes: number;
}

/** One tensor of a batch as the frames describe it; its bytes are elsewhere. */
export interface TensorHead {
  /** Position in the list that `load` named. */
  readonly index: number;
  readonly shape: readonly number[];
  readonly byteLength: number;
}

/** Bytes that the head of a tensor of that rank takes in a frame. */
export function headBytes(rank: number): number {
  return 12 + 4 * rank;
}

/** @returns the offset behind what was written. */
export function writeTensorHead(frame: Buffer, offset: number, index: number, shape: readonly number[], byteLength: number): number {
  frame.writeUInt32LE(index, offset);
  frame.writeUInt32LE(shape.length, offset + 4);
  frame.writeUInt32LE(byteLength, offset + 8);
  let at = offset + 12;
  for (const dim of shape) at = frame.writeUInt32LE(dim, at);
  return at;
}

export function readTensorHead(frame: Buffer, offset: number): TensorHead {
  const rank = frame.readUInt32LE(offset + 4);
  const shape = new Array<number>(rank);
  for (let i = 0; i < rank; i++) shape[i] = frame.readUInt32LE(offset + 12 + 4 * i);
  return { index: frame.readUInt32LE(offset), shape, byteLength: frame.readUInt32LE(offset + 8) };
}
