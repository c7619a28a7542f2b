/**
 * Copies out of an ONNX file the few fields that describe it, by walking the protobuf wire format over a window of the
 * file: weights are stepped over, never read, so that a file of any size costs little time and memory.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/** What to do with each field of a message: copy it, note its text, or go into it. Fields that are not named are stepped over. */
interface Plan {
  readonly note: number;
  readonly copy: ReadonlySet<number>;
  readonly enter: ReadonlyMap<number, Plan>;
}

const plan = (copy: number[], enter: [number, Plan][] = [], note = 0): { copy: Set<number>; enter: Map<number, Plan>; note: number } => ({
  note,
  copy: new Set(copy),
  enter: new Map(enter),
});

// Tensors keep their name and the place of external data; nodes are entered only for tensors and graphs in attributes, and
// for their type, of which a model has many nodes and few kinds: it is noted instead of copied.
const TENSOR = plan([8, 13]);
const ATTRIBUTE = plan([], [[5, TENSOR], [10, TENSOR]]); // prettier-ignore
const NODE = plan([], [[5, ATTRIBUTE]], 4);
const GRAPH = plan([2, 11, 12], [[1, NODE], [5, TENSOR]]); // prettier-ignore
ATTRIBUTE.enter.set(6, GRAPH).set(11, GRAPH);
const MODEL = plan([1, 2, 8, 14], [[7, GRAPH], [25, plan([], [[7, NODE]])]]); // prettier-ignore

/** Small, because the thread comes free for others only between two reads. */
const WINDOW_BYTES = 16 * 1024;
/** More than any honest file says about itself. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
const MAX_DEPTH = 64;
/** Longer types of operators, and more kinds of them, are of no interest. */
const MAX_NOTE_BYTES = 256;
const MAX_NOTES = 4096;

export class MalformedFileError extends Error {}

/** What is needed of a file, as a `FileHandle` of node:fs/promises has it. The thread is free for others until it answers. */
export interface ReadableFile {
  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

/** Sequential reader with cheap steps forward. */
class Window {
  position = 0;
  #start = 0;
  #bytes = new Uint8Array(0);

  constructor(
    private readonly file: ReadableFile,
    readonly size: number,
  ) {}

  /** At least `count` bytes at the position, as a view that is good until the next call. */
  async peek(count: number): Promise<Uint8Array> {
    const from = this.position - this.#start;
    if (from >= 0 && from + count <= this.#bytes.length) return this.#bytes.subarray(from);
    const length = Math.min(Math.max(WINDOW_BYTES, count), this.size - this.position);
    const buffer = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.file.read(buffer, filled, length - filled, this.position + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    this.#start = this.position;
    this.#bytes = buffer.subarray(0, filled);
    return this.#bytes;
  }

  /** As {@link peek} where the bytes are held already, which spares a turn of the microtask queue; else undefined. */
  held(count: number): Uint8Array | undefined {
    const from = this.position - this.#start;
    return from >= 0 && from + count <= this.#bytes.length ? this.#bytes.subarray(from, from + count) : undefined;
  }

  /** A varint as a number; lengths and tags fit, larger values are only stepped over. */
  async varint(end: number): Promise<number> {
    const bytes = await this.peek(Math.min(10, end - this.position));
    let value = 0;
    for (let i = 0; i < 10; i++) {
      const byte = bytes[i];
      if (byte === undefined || this.position + i >= end) throw new MalformedFileError('it ends inside a number');
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) {
        this.position += i + 1;
        return value;
      }
    }
    throw new MalformedFileError('it holds a number longer than 10 bytes');
  }
}

class Sieve {
  #kept = 0;
  readonly notes = new Set<string>();

  constructor(private readonly window: Window) {}

  async message(messagePlan: Plan, end: number, depth: number): Promise<Uint8Array> {
    if (depth > MAX_DEPTH) throw new MalformedFileError(`its graphs nest deeper than ${MAX_DEPTH} levels`);
    const { window } = this;
    const out = new BinaryWriter();
    while (window.position < end) {
      const tag = await window.varint(end);
      const field = Math.floor(tag / 8);
      const wireType: WireType = tag % 8;
      if (field === 0) throw new MalformedFileError('it holds a field number 0');
      if (wireType === WireType.Varint) {
        const from = await window.peek(Math.min(10, end - window.position));
        const start = window.position;
        await window.varint(end);
        if (messagePlan.copy.has(field)) out.tag(field, wireType).raw(from.slice(0, window.position - start));
        continue;
      }
      const length =
        wireType === WireType.Bit32
          ? 4
          : wireType === WireType.Bit64
            ? 8
            : wireType === WireType.LengthDelimited
              ? await window.varint(end)
              : -1;
      if (length < 0) throw new MalformedFileError(`it holds an unknown wire type ${wireType}`);
      const next = window.position + length;
      if (next > end) throw new MalformedFileError('it is cut short');
      const inner = wireType === WireType.LengthDelimited ? messagePlan.enter.get(field) : undefined;
      if (inner !== undefined) {
        const kept = await this.message(inner, next, depth + 1);
        // An empty node says nothing; an empty graph is still a graph.
        if (kept.length > 0 || field === 7) out.tag(field, wireType).bytes(kept);
      } else if (field === messagePlan.note && wireType === WireType.LengthDelimited) {
        if (length <= MAX_NOTE_BYTES && this.notes.size < MAX_NOTES) {
          const bytes = window.held(length) ?? (await window.peek(length)).subarray(0, length);
          this.notes.add(String.fromCharCode(...bytes));
        }
      } else if (messagePlan.copy.has(field) && wireType === WireType.LengthDelimited) {
        this.#kept += length;
        if (this.#kept > MAX_KEPT_BYTES) throw new MalformedFileError(`its description is larger than ${MAX_KEPT_BYTES} bytes`);
        out.tag(field, wireType).bytes((await window.peek(length)).slice(0, length));
      }
      window.position = next;
    }
    return out.finish();
  }
}

export interface SiftedModel {
  /** The description part of the file, itself an ONNX message without weights. */
  readonly description: Uint8Array;
  readonly operators: readonly string[];
}

/**
 * @param size of the file, bytes
 * @throws MalformedFileError when the bytes are not protobuf
 */
export async function siftModel(file: ReadableFile, size: number): Promise<SiftedModel> {
  const sieve = new Sieve(new Window(file, size));
  const description = await sieve.message(MODEL, size, 0);
  return { description, operators: [...sieve.notes] };
}
