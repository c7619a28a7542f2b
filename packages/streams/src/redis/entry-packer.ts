/** Packs requests that wait into one entry: as many as fit, in order, each with what is left of its queue timeout. */
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
    writeEnvelope(writer, withTimeLeft(request, nowUs), request.heldBytes);
    requests.push(request);
    if (requests.length === MAX_ENTRY_REQUESTS || writer.totalBytes >= MAX_ENTRY_BYTES) break;
  }
  writer.fillU32(count, requests.length);
  const [first, ...rest] = writer.finish() as Buffer[];
  return { bytes: rest.length === 0 ? first! : Buffer.concat([first!, ...rest]), requests };
}

/** A timeout that has run out is not 0, which would mean that none was asked for: the lane lets it expire. */
function withTimeLeft({ envelope, sinceUs }: Unanswered, nowUs: number): Unanswered['envelope'] {
  if (envelope.timeoutUs === 0) return envelope;
  const passedUs = Math.floor(nowUs - sinceUs);
  return passedUs <= 0 ? envelope : { ...envelope, timeoutUs: Math.max(1, envelope.timeoutUs - passedUs) };
}
