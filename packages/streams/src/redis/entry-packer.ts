/** Packs requests that wait into one entry: as many as fit, in order, each with what is left of its times. */
import { writeEntryHead, writeEnvelope, WireWriter } from '@paceline/protocol/wire';
import type { Unanswered } from './unanswered.js';

/** An entry is closed when it has so many requests or so many bytes, whichever comes first. */
export const MAX_ENTRY_REQUESTS = 256;
export const MAX_ENTRY_BYTES = 256 * 1024;

export interface PackedEntry {
  readonly bytes: Buffer;
  readonly requests: readonly Unanswered[];
}

/** @returns the first entry of `waiting`, which must not be empty and stays as it is */
export function packEntry(waiting: Iterable<Unanswered>, nowUs: number): PackedEntry {
  const writer = new WireWriter();
  const count = writeEntryHead(writer);
  const requests: Unanswered[] = [];
  for (const request of waiting) {
    writeEnvelope(writer, request.envelope, request.heldBytes, Math.max(0, Math.floor(nowUs - request.sinceUs)));
    requests.push(request);
    if (requests.length === MAX_ENTRY_REQUESTS || writer.totalBytes >= MAX_ENTRY_BYTES) break;
  }
  writer.fillU32(count, requests.length);
  const [first, ...rest] = writer.finish() as Buffer[];
  return { bytes: rest.length === 0 ? first! : Buffer.concat([first!, ...rest]), requests };
}
