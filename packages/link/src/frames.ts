/**
 * The frames of a link: four bytes length of the body (little-endian), one byte type, the body. The reader cuts a stream
 * into them: a body that came in one piece is a view of it, one that came in several is put together once, and what
 * belongs to a transfer is handed on piece by piece, since it has a buffer of its own. Its invariant: it never holds more
 * than one frame, and no frame is larger than the maximum.
 */

/** Frames of the link itself. Messages of the application are `MESSAGE | kind` or `RELIABLE | kind`, kind 0..63. */
export const FrameType = {
  HANDSHAKE: 1,
  /** f64: how many reliable messages of the other side's session this side has. */
  RESUME: 2,
  PING: 3,
  /** f64: as in RESUME. */
  ACK: 4,
  /** Asks for an ACK at once. */
  SYNC: 5,
  /** u32 transfer, u8 type of the message, f64 bytes. */
  BEGIN: 6,
  /** u32 transfer, bytes. */
  CHUNK: 7,
  /** u32 transfer, u32 bytes more that may be sent. */
  GRANT: 8,
  /** u32 transfer: it is not wanted; nothing of it has been sent. */
  REFUSE: 9,
  /** The other side leaves and will not come back. */
  BYE: 10,
} as const;

export const MESSAGE = 0x40;
export const RELIABLE = 0x80;
export const KIND_MASK = 0x3f;

export const HEADER_BYTES = 5;
const CHUNK_HEADER_BYTES = HEADER_BYTES + 4;

/** A message above this goes as a transfer, whose chunks are at most as large, bytes. */
export const CHUNK_BYTES = 64 * 1024;
export const FRAME_MAX_BYTES = CHUNK_BYTES + 4;

/** What arrived is not of this protocol: its connection must be cut. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

export interface FrameHandler {
  /** `body` is the handler's to keep. */
  onFrame(type: number, body: Buffer): void;
  /** A piece of a transfer, valid only during the call. */
  onChunk(transfer: number, piece: Buffer): void;
}

export class FrameReader {
  /** Before the other side is known, little is believed. */
  maxBytes: number;
  #stopped = false;
  /** A header of which not all has come. */
  readonly #head = Buffer.alloc(CHUNK_HEADER_BYTES);
  #headBytes = 0;
  #body: Buffer | undefined;
  #bodyBytes = 0;
  #type = 0;
  #chunkOf = 0;
  #chunkLeft = 0;

  constructor(
    private readonly handler: FrameHandler,
    maxBytes: number,
  ) {
    this.maxBytes = maxBytes;
  }

  /** Nothing more is handed on, not even of the chunk being read. */
  stop(): void {
    this.#stopped = true;
  }

  /** @throws FrameError, and what the handler throws */
  push(chunk: Buffer): void {
    let at = 0;
    const end = chunk.byteLength;
    while (at < end && !this.#stopped) {
      if (this.#chunkLeft > 0) at += this.#piece(chunk, at);
      else if (this.#body) at += this.#fill(this.#body, chunk, at);
      else if (this.#headBytes > 0) at += this.#fillHead(chunk, at);
      else {
        // The usual case: a whole frame lies in the chunk.
        const left = end - at;
        const length = left >= HEADER_BYTES ? this.#checked(readLength(chunk, at), chunk[at + 4] ?? 0) : 0;
        const type = chunk[at + 4] ?? 0;
        if (left >= HEADER_BYTES + length && type !== FrameType.CHUNK) {
          at += HEADER_BYTES + length;
          this.handler.onFrame(type, chunk.subarray(at - length, at));
        } else {
          at += this.#fillHead(chunk, at);
        }
      }
    }
  }

  #piece(chunk: Buffer, at: number): number {
    const bytes = Math.min(this.#chunkLeft, chunk.byteLength - at);
    this.#chunkLeft -= bytes;
    this.handler.onChunk(this.#chunkOf, chunk.subarray(at, at + bytes));
    return bytes;
  }

  #fill(body: Buffer, chunk: Buffer, at: number): number {
    const copied = chunk.copy(body, this.#bodyBytes, at);
    this.#bodyBytes += copied;
    if (this.#bodyBytes === body.byteLength) {
      this.#body = undefined;
      this.handler.onFrame(this.#type, body);
    }
    return copied;
  }

  #fillHead(chunk: Buffer, at: number): number {
    const wanted = this.#headBytes >= HEADER_BYTES ? CHUNK_HEADER_BYTES : HEADER_BYTES;
    const copied = chunk.copy(this.#head, this.#headBytes, at, at + wanted - this.#headBytes);
    this.#headBytes += copied;
    if (this.#headBytes < wanted) return copied;
    this.#type = this.#head[4] ?? 0;
    const length = this.#checked(readLength(this.#head, 0), this.#type);
    if (this.#type === FrameType.CHUNK) {
      if (this.#headBytes < CHUNK_HEADER_BYTES) return copied;
      this.#chunkOf = this.#head.readUInt32LE(HEADER_BYTES);
      this.#chunkLeft = length - 4;
    } else if (length === 0) {
      this.#headBytes = 0;
      this.handler.onFrame(this.#type, EMPTY);
      return copied;
    } else {
      this.#body = Buffer.allocUnsafeSlow(length);
      this.#bodyBytes = 0;
    }
    this.#headBytes = 0;
    return copied;
  }

  #checked(length: number, type: number): number {
    if (length > this.maxBytes) throw new FrameError(`expected a frame of at most ${this.maxBytes} bytes, found ${length}`);
    if (type === FrameType.CHUNK && length <= 4) throw new FrameError(`expected a piece of a transfer, found a frame of ${length} bytes`);
    return length;
  }
}

const EMPTY = Buffer.alloc(0);

function readLength(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at);
}
