/**
 * One model instance inside a host: a session of its runtime and its input buffers. Turns the tensors of an `execute` frame into feeds,
 * runs, and lays the outputs out again. Runs are strictly one after the other, which is why input buffers are reused.
 */
import { readSync, writevSync } from 'node:fs';
import {
  ANNOUNCE_START,
  EXECUTE_FIXED_BYTES,
  FRAME,
  padded,
  RESULT_FIXED_BYTES,
  SHM_INPUTS,
  SHM_OUTPUTS,
  writeHeader,
} from '../host-protocol/frames.js';
import { headBytes, readTensorHead, writeTensorHead, type LoadMessage, type TensorHead } from '../host-protocol/messages.js';
import { inputRegion, outputRegion, REGION_BYTES, SHM_THRESHOLD_BYTES } from '../host-protocol/shared-memory.js';
import { HostError } from './host-error.js';
import type { HostRuntime, HostSession } from './host-runtime.js';

/** Input buffers above this size are made for each batch instead of kept. */
const KEPT_BUFFER_BYTES = 32 * 1024 * 1024;
const PADDING = Buffer.alloc(8);

export interface HostContext {
  /** Descriptor of the shared-memory file, if there is one. */
  readonly shmFd: number | undefined;
  readonly copied: { inBytes: number; outBytes: number };
  /** Notes that this execute begins now. */
  announce(instance: number, sequence: number, byFrame: boolean): void;
}

interface LaidOut {
  readonly index: number;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** What the entry of the host needs of an instance, whatever runs it. */
export interface HostedModel {
  /** @returns the parts of the result frame, as a promise only where the runtime needs one. @throws HostError */
  execute(frame: Buffer): Uint8Array[] | Promise<Uint8Array[]>;
  dispose(): void | Promise<void>;
}

/** @throws HostError when the runtime cannot load the model */
export async function loadInstance<T>(runtime: HostRuntime<T>, spec: LoadMessage, context: HostContext): Promise<HostedModel> {
  return new HostInstance(await runtime.load(spec), spec, context);
}

class HostInstance<T> implements HostedModel {
  readonly #buffers: Buffer[] = [];

  constructor(
    private readonly session: HostSession<T>,
    private readonly spec: LoadMessage,
    private readonly context: HostContext,
  ) {}

  dispose(): void | Promise<void> {
    return this.session.dispose();
  }

  execute(frame: Buffer): Uint8Array[] | Promise<Uint8Array[]> {
    const begun = process.hrtime();
    const flags = frame.readUInt32LE(16);
    // Before anything that could take the process down.
    this.context.announce(frame.readUInt32LE(8), frame.readUInt32LE(12), (flags & ANNOUNCE_START) !== 0);
    const wanted = this.#wanted(frame);
    const feeds = this.#gather(frame, flags, wanted.length);
    const gatherNs = sinceNs(begun);
    const ran = process.hrtime();
    const names = wanted.map((index) => this.spec.outputs[index]!.name);
    const outputs = this.session.run(feeds, names);
    if (outputs instanceof Promise) return outputs.then((done) => this.#result(frame, wanted, done, gatherNs, sinceNs(ran)));
    return this.#result(frame, wanted, outputs, gatherNs, sinceNs(ran));
  }

  #wanted(frame: Buffer): number[] {
    const wanted = new Array<number>(frame.readUInt32LE(28));
    for (let i = 0; i < wanted.length; i++) wanted[i] = frame.readUInt32LE(EXECUTE_FIXED_BYTES + 4 * i);
    return wanted;
  }

  #gather(frame: Buffer, flags: number, wantedCount: number): Record<string, T> {
    const count = frame.readUInt32LE(24);
    const heads = new Array<TensorHead>(count);
    let at = EXECUTE_FIXED_BYTES + 4 * wantedCount;
    for (let i = 0; i < count; i++) {
      heads[i] = readTensorHead(frame, at);
      at += headBytes(heads[i]!.shape.length);
    }
    at = padded(at);
    let shmAt = inputRegion(frame.readUInt32LE(20));
    const feeds: Record<string, T> = {};
    for (const head of heads) {
      let data: Buffer;
      if ((flags & SHM_INPUTS) !== 0) {
        data = this.#readShared(head, shmAt);
        shmAt += head.byteLength;
      } else {
        data = frame.subarray(at, at + head.byteLength);
        at += padded(head.byteLength);
      }
      const spec = this.spec.inputs[head.index]!;
      feeds[spec.name] = this.session.feed(spec.name, spec.datatype, head.shape, data);
    }
    return feeds;
  }

  #readShared(head: TensorHead, position: number): Buffer {
    const data = this.#buffer(head.index, head.byteLength);
    for (let have = 0; have < head.byteLength;) {
      const got = readSync(this.context.shmFd!, data, have, head.byteLength - have, position + have);
      if (got === 0)
        throw new HostError('INTERNAL', 'shm_short', `the shared-memory file ends at byte ${have} of ${head.byteLength} of an input`);
      have += got;
    }
    this.context.copied.inBytes += head.byteLength;
    return data;
  }

  #buffer(index: number, bytes: number): Buffer {
    if (bytes > KEPT_BUFFER_BYTES) return Buffer.allocUnsafeSlow(bytes);
    let kept = this.#buffers[index];
    if (!kept || kept.byteLength < bytes) {
      kept = Buffer.allocUnsafeSlow(bytes);
      this.#buffers[index] = kept;
    }
    return kept.subarray(0, bytes);
  }

  #result(frame: Buffer, wanted: readonly number[], outputs: Readonly<Record<string, T>>, gatherNs: number, inferNs: number): Uint8Array[] {
    const begun = process.hrtime();
    const laidOut = new Array<LaidOut>(wanted.length);
    let headsEnd = RESULT_FIXED_BYTES;
    let total = 0;
    for (let i = 0; i < wanted.length; i++) {
      const spec = this.spec.outputs[wanted[i]!]!;
      const tensor = outputs[spec.name]!;
      const bytes = this.session.bytesOf(tensor);
      const shape = this.session.shapeOf(tensor);
      laidOut[i] = { index: wanted[i]!, shape, bytes };
      headsEnd += headBytes(shape.length);
      total += bytes.byteLength;
    }
    const slot = frame.readUInt32LE(20);
    const shared = total > SHM_THRESHOLD_BYTES && this.#writeShared(slot, laidOut, total);
    const head = Buffer.alloc(padded(headsEnd));
    writeHeader(head, FRAME.result, frame.readUInt32LE(8), frame.readUInt32LE(12));
    head.writeUInt32LE(shared ? SHM_OUTPUTS : 0, 16);
    head.writeUInt32LE(slot, 20);
    head.writeUInt32LE(wanted.length, 24);
    let at = RESULT_FIXED_BYTES;
    for (const output of laidOut) at = writeTensorHead(head, at, output.index, output.shape, output.bytes.byteLength);
    const parts: Uint8Array[] = [head];
    if (!shared) for (const output of laidOut) pushPadded(parts, output.bytes);
    let length = 0;
    for (const part of parts) length += part.byteLength;
    head.writeUInt32LE(length, 0);
    head.writeDoubleLE(gatherNs, 32);
    head.writeDoubleLE(inferNs, 40);
    head.writeDoubleLE(sinceNs(begun), 48);
    return parts;
  }

  /** False where the file is missing, full or the outputs are too large for a region: they then go by the socket. */
  #writeShared(slot: number, outputs: readonly LaidOut[], total: number): boolean {
    if (this.context.shmFd === undefined || total > REGION_BYTES) return false;
    const parts = outputs.map((o) => o.bytes).filter((b) => b.byteLength > 0);
    try {
      const written = writevSync(this.context.shmFd, parts, outputRegion(slot));
      if (written !== total) return false;
    } catch {
      return false;
    }
    this.context.copied.outBytes += total;
    return true;
  }
}

function pushPadded(parts: Uint8Array[], bytes: Uint8Array): void {
  if (bytes.byteLength > 0) parts.push(bytes);
  const padding = padded(bytes.byteLength) - bytes.byteLength;
  if (padding > 0) parts.push(PADDING.subarray(0, padding));
}

function sinceNs(begun: [number, number]): number {
  const [s, ns] = process.hrtime(begun);
  return s * 1e9 + ns;
}
