/**
 * Instance hosts with faults: an entry script that bends the file system calls of the process as asked and then runs the
 * real entry, so that the host under test is the product's own. The script reads the frames (u32 length, type, instance,
 * sequence, little-endian) from descriptor 3 and knows from the status record in descriptor 4 which one begins.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface HostFaults {
  /** A frame with these bytes, Latin-1, kills the host when the host begins with it. */
  readonly poison?: string;
  /** The same, but while the host reads it: it never begins. */
  readonly deadlyToRead?: string;
  /** Each frame with these bytes makes the host keep so much memory for ever. */
  readonly leak?: { readonly marker: string; readonly bytes: number };
  /** The host stands still when it begins with a frame that has these bytes, e.g. the path of a model to load. */
  readonly hang?: string;
  /** Writing to the shared-memory file fails as on a full disk, but for the status record. */
  readonly sharedMemoryFull?: boolean;
}

const SCRIPT = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { readSync, writeSync, writevSync } = fs;
const begins = new Map();
const kept = [];
let bytes = Buffer.alloc(0);
const die = () => process.kill(process.pid, 'SIGKILL');
const begin = (sequence) => {
  const text = begins.get(sequence) ?? '';
  begins.delete(sequence);
  if (faults.poison && text.includes(faults.poison)) die();
  if (faults.leak && text.includes(faults.leak.marker)) kept.push(Buffer.alloc(faults.leak.bytes, 1));
  if (faults.hang && text.includes(faults.hang)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
};
fs.readSync = (fd, buffer, offset, length, position) => {
  const got = readSync(fd, buffer, offset, length, position);
  if (fd !== 3) return got;
  bytes = Buffer.concat([bytes, buffer.subarray(offset, offset + got)]);
  while (bytes.length >= 16 && bytes.length >= bytes.readUInt32LE(0)) {
    const frame = bytes.subarray(0, bytes.readUInt32LE(0));
    bytes = bytes.subarray(frame.length);
    const text = frame.toString('latin1');
    if (faults.deadlyToRead && text.includes(faults.deadlyToRead)) die();
    begins.set(frame.readUInt32LE(12), text);
  }
  return got;
};
fs.writeSync = (fd, data, ...rest) => {
  const written = writeSync(fd, data, ...rest);
  if (fd === 4) begin(data.readUInt32LE(0));
  return written;
};
fs.writevSync = (fd, parts, position) => {
  if (fd === 4 && faults.sharedMemoryFull) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  return writevSync(fd, parts, position);
};
syncBuiltinESMExports();
await import(entry);
`;

/** Writes the script into `folder` and returns its path. @param entry the real host's compiled entry */
export function writeFaultyHost(folder: string, entry: string, faults: HostFaults): string {
  const path = join(folder, 'faulty-host.mjs');
  writeFileSync(path, `const faults = ${JSON.stringify(faults)};\nconst entry = ${JSON.stringify(pathToFileURL(entry).href)};\n${SCRIPT}`);
  return path;
}
