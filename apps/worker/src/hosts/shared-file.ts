/**
 * The worker's side of the shared-memory file of one host: made, unlinked at once (so nothing is left behind however
 * either side ends), handed to the host as a descriptor, closed with it.
 */
import { closeSync, ftruncateSync, openSync, read, readSync, unlinkSync, writev, writevSync } from 'node:fs';
import { promisify } from 'node:util';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { inputRegion, outputRegion, REGION_BYTES, STATUS_BYTES } from '../host-protocol/shared-memory.js';

/**
 * Above this many bytes a copy is made by the thread pool: a hundred megabytes, each page of them new, would hold up
 * everybody else for a tenth of a second. Below it the detour costs more than it spares.
 */
export const POOL_COPY_BYTES = 8 * 1024 * 1024;

const writevInPool = promisify(writev);
const readInPool = promisify(read);

export class SharedFile {
  readonly #status = Buffer.alloc(STATUS_BYTES);
  /** Whether tensors lie in it whose memory could be given back. */
  #holdsTensors = false;
  /** Copies that the thread pool makes now: the descriptor must not be closed, or come to mean another file, meanwhile. */
  #copies = 0;
  #closing = false;

  private constructor(readonly fd: number) {}

  /** undefined where `directory` is missing, full or not writable: tensors then go by the socket. */
  static create(directory: string): SharedFile | undefined {
    const path = join(directory, `paceline-${process.pid}-${randomBytes(8).toString('hex')}`);
    try {
      const fd = openSync(path, 'wx+', 0o600);
      unlinkSync(path);
      ftruncateSync(fd, STATUS_BYTES);
      return new SharedFile(fd);
    } catch {
      return undefined;
    }
  }

  /** Writes `parts` one after the other into the slot's input region; false where they do not fit or memory is short. */
  writeInputs(slot: number, parts: readonly Uint8Array[], totalBytes: number): boolean {
    if (totalBytes > REGION_BYTES) return false;
    try {
      this.#holdsTensors = true;
      return writevSync(this.fd, parts, inputRegion(slot)) === totalBytes;
    } catch {
      return false;
    }
  }

  /** As {@link writeInputs}, in the thread pool. Never rejects. */
  async writeLargeInputs(slot: number, parts: readonly Uint8Array[], totalBytes: number): Promise<boolean> {
    if (totalBytes > REGION_BYTES) return false;
    this.#holdsTensors = true;
    try {
      return await this.#copying(async () => {
        const left = [...parts];
        for (let have = 0; have < totalBytes;) {
          const { bytesWritten } = await writevInPool(this.fd, left, inputRegion(slot) + have);
          if (bytesWritten === 0) return false;
          have += bytesWritten;
          dropBytes(left, bytesWritten);
        }
        return true;
      });
    } catch {
      return false;
    }
  }

  /** As {@link readOutputs}, in the thread pool. */
  async readLargeOutputs(slot: number, bytes: number): Promise<Buffer> {
    this.#holdsTensors = true;
    const data = Buffer.allocUnsafeSlow(bytes);
    await this.#copying(async () => {
      for (let have = 0; have < bytes;) {
        const { bytesRead } = await readInPool(this.fd, data, have, bytes - have, outputRegion(slot) + have);
        if (bytesRead === 0) throw endsEarly(have, bytes);
        have += bytesRead;
      }
    });
    return data;
  }

  /** @returns the first `bytes` of the slot's output region in a buffer of its own. */
  readOutputs(slot: number, bytes: number): Buffer {
    this.#holdsTensors = true;
    const data = Buffer.allocUnsafeSlow(bytes);
    for (let have = 0; have < bytes;) {
      const got = readSync(this.fd, data, have, bytes - have, outputRegion(slot) + have);
      if (got === 0) throw endsEarly(have, bytes);
      have += got;
    }
    return data;
  }

  /** Sequence of the execute that began last; 0 where none has. */
  lastStarted(): number {
    const got = readSync(this.fd, this.#status, 0, STATUS_BYTES, 0);
    return got === STATUS_BYTES ? this.#status.readUInt32LE(0) : 0;
  }

  /** Gives back the memory of every slot. Only while no batch is with the host. */
  trim(): void {
    if (!this.#holdsTensors || this.#copies > 0) return;
    ftruncateSync(this.fd, STATUS_BYTES);
    this.#holdsTensors = false;
  }

  /** Closes the descriptor, behind the copies that are being made. */
  close(): void {
    this.#closing = true;
    if (this.#copies === 0) closeSync(this.fd);
  }

  async #copying<T>(copy: () => Promise<T>): Promise<T> {
    if (this.#closing) throw new Error('the shared-memory file is closed');
    this.#copies += 1;
    try {
      return await copy();
    } finally {
      this.#copies -= 1;
      if (this.#copies === 0 && this.#closing) closeSync(this.fd);
    }
  }
}

function endsEarly(have: number, bytes: number): Error {
  return new Error(`the shared-memory file ends at byte ${have} of ${bytes} of the outputs`);
}

/** Takes the first `bytes` off a list of parts. */
function dropBytes(parts: Uint8Array[], bytes: number): void {
  let left = bytes;
  while (left > 0) {
    const first = parts[0]!;
    if (first.byteLength > left) {
      parts[0] = first.subarray(left);
      return;
    }
    left -= first.byteLength;
    parts.shift();
  }
}
