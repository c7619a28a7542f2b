/**
 * A packed entry: what a gateway has for one partition in one tick. A version byte, how many requests there are, then
 * their envelopes. It is read whole or not at all.
 */
import type { Envelope } from '../infer.js';
import { readEnvelope } from './envelope.js';
import { WireReader } from './reader.js';
import type { ReservedU32, WireWriter } from './writer.js';

/** The format of entries that this build writes and reads. */
export const ENTRY_VERSION = 1;

/** Opens an entry. @returns where the number of envelopes that follow has to be filled in */
export function writeEntryHead(writer: WireWriter): ReservedU32 {
  writer.u8(ENTRY_VERSION);
  return writer.reserveU32();
}

/** @throws WireFormatError where any byte of it is not as it should be */
export function readEntry(bytes: Uint8Array): Envelope[] {
  const reader = new WireReader(bytes);
  const version = reader.u8('entry version');
  if (version !== ENTRY_VERSION) reader.fail(`entry version: expected ${ENTRY_VERSION}, found ${version}`);
  const count = reader.u32('requests of an entry');
  const envelopes: Envelope[] = [];
  if (count > reader.remaining) reader.fail(`requests of an entry: ${count} are announced, but ${reader.remaining} bytes are left`);
  for (let i = 0; i < count; i++) envelopes.push(readEnvelope(reader));
  reader.end('entry');
  return envelopes;
}
