/**
 * The framed protocol between a worker and an instance host, over one stream socket (the host's file descriptor 3).
 * This file and messages.ts are its whole definition; a host in another language implements the same bytes.
 *
 * A frame is a multiple of 8 bytes, all numbers little-endian:
 *
 *     0  u32  length of the whole frame in bytes, this word included
 *     4  u32  type, one of FRAME
 *     8  u32  instance: a number the worker chose in `load`; 0 where the frame concerns the host itself
 *    12  u32  sequence: set by the worker, ascending per host, repeated in every answer
 *    16  ...  body, zero-padded to the multiple of 8
 *
 * Worker to host: load, execute, cancel, ping, stats, unload. Host to worker: one answer for each, in the order in which
 * they were sent (cancel has none), plus `started` where an execute asked for it. A host works strictly one after the
 * other. When the socket ends, the host ends at once: nobody is left to answer.
 *
 * Bodies of load, loaded, failed, stats, statistics: u32 length of a JSON text, u32 0, the text in UTF-8.
 * cancel: the sequence names an execute that was sent before; if it has not begun it is answered with `failed`
 * (CANCELLED), else the frame has no effect. ping, pong, unload, unloaded, started: no body.
 *
 * execute:
 *    16  u32  flags: SHM_INPUTS, ANNOUNCE_START
 *    20  u32  slot of the shared-memory file (shared-memory.ts)
 *    24  u32  i, the number of inputs        28  u32  w, the number of outputs wanted
 *    32  u32[w]  indexes of the wanted outputs in the list that `load` named
 *        then for each input: u32 index in the list of `load`, u32 rank, u32 bytes, u32[rank] dimensions
 *        padding to 8, then, without SHM_INPUTS, each input's bytes, each padded to 8. With it they lie in the slot's
 *        input region, one after the other without padding.
 *
 * result:
 *    16  u32  flags: SHM_OUTPUTS            20  u32  slot
 *    24  u32  o, the number of outputs      28  u32  0
 *    32  f64  nanoseconds to gather         40  f64  nanoseconds to run      48  f64  nanoseconds to lay out the outputs
 *    56       for each output, in the order wanted: u32 index, u32 rank, u32 bytes, u32[rank] dimensions
 *        padding to 8, then the bytes as above (SHM_OUTPUTS: the slot's output region).
 *
 * Tensors are in canonical form: packed, row-major, BYTES elements with their 4-byte lengths.
 */
export const FRAME = {
  load: 1,
  loaded: 2,
  execute: 3,
  started: 4,
  result: 5,
  failed: 6,
  cancel: 7,
  ping: 8,
  pong: 9,
  stats: 10,
  statistics: 11,
  unload: 12,
  unloaded: 13,
} as const;

export type FrameType = (typeof FRAME)[keyof typeof FRAME];

export const HEADER_BYTES = 16;
export const EXECUTE_FIXED_BYTES = 32;
export const RESULT_FIXED_BYTES = 56;

/** execute: the inputs lie in shared memory. */
export const SHM_INPUTS = 1;
/** execute: send a `started` frame before running (only where there is no shared-memory file to note it in). */
export const ANNOUNCE_START = 2;
/** result: the outputs lie in shared memory. */
export const SHM_OUTPUTS = 1;

/** Largest frame either side accepts; a longer one is a broken peer. */
export const MAX_FRAME_BYTES = 0x7fff_fff8;

/** Tensor bytes of a batch that no frame can hold with its head. */
export const MAX_BATCH_BYTES = 0x7000_0000;

/** `bytes` rounded up to the next multiple of 8. */
export function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

export function writeHeader(frame: Buffer, type: FrameType, instance: number, sequence: number): void {
  frame.writeUInt32LE(frame.byteLength, 0);
  frame.writeUInt32LE(type, 4);
  frame.writeUInt32LE(instance, 8);
  frame.writeUInt32LE(sequence, 12);
}

/** A frame without a body. */
export function emptyFrame(type: FrameType, instance: number, sequence: number): Buffer {
  const frame = Buffer.alloc(HEADER_BYTES);
  writeHeader(frame, type, instance, sequence);
  return frame;
}

/** A frame whose body is `body` as JSON. */
export function jsonFrame(type: FrameType, instance: number, sequence: number, body: object): Buffer {
  const text = Buffer.from(JSON.stringify(body), 'utf8');
  const frame = Buffer.alloc(padded(HEADER_BYTES + 8 + text.byteLength));
  writeHeader(frame, type, instance, sequence);
  frame.writeUInt32LE(text.byteLength, HEADER_BYTES);
  text.copy(frame, HEADER_BYTES + 8);
  return frame;
}

/** The JSON body of a frame, unchecked: both ends are ours. */
export function jsonBody(frame: Buffer): unknown {
  const bytes = frame.readUInt32LE(HEADER_BYTES);
  return JSON.parse(frame.toString('utf8', HEADER_BYTES + 8, HEADER_BYTES + 8 + bytes));
}
