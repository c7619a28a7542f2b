/**
 * The worker's side of the shared-memory file of one host: made, unlinked at once (so nothing is left behind however
 * either side ends), handed to the host as a descriptor, closed with it.
 */
import { closeSync, ftruncateSync, openSync, readSync, unlinkSync, writevSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { inputRegion, outputRegion, REGION_BYTES, STATUS_BYTES } from '../host-protocol/shared-memory.js';

export class SharedFile {
  readonly #status = Buffer.alloc(STATUS_BYTES);
  /** Whether tensors lie in it whose memory could be given back. */
  #holdsTensors = false;

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

  /** @returns the first `bytes` of the slot's output region in a buffer of its own. */
  readOutputs(slot: number, bytes: number): Buffer {
    this.#holdsTensors = true;
    const data = Buffer.allocUnsafeSlow(bytes);
    for (let have = 0; have < bytes;) {
      const got = readSync(this.fd, data, have, bytes - have, outputRegion(slot) + have);
      if (got === 0) throw new Error(`the shared-memory file ends at byte ${have} of ${bytes} of the outputs`);
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
    if (!this.#holdsTensors) return;
    ftruncateSync(this.fd, STATUS_BYTES);
    this.#holdsTensors = false;
  }

  close(): void {
    closeSync(this.fd);
  }
}
