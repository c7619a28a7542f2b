/**
 * A packed entry: what a gateway has for one partition in one tick. A version byte, how many requests there are, then
 * their envelopes. It is read whole or not at all.
 */
import type { Envelope } from '../infer.js';
import { readEnvelope } from './envelope.js';
import { WireReader } from './reader.js';
import type { WireWriter } from './writer.js';

/** The format of entries that this build writes and reads. */
export const ENTRY_VERSION = 1;

/** Opens an entry; `count` envelopes must follow. */
export function writeEntryHead(writer: WireWriter, count: number): void {
  writer.u8(ENTRY_VERSION);
  writer.u16(count);
}

/** @throws WireFormatError where any byte of it is not as it should be */
export function readEntry(bytes: Uint8Array): Envelope[] {
  const reader = new WireReader(bytes);
  const version = reader.u8('entry version');
  if (version !== ENTRY_VERSION) reader.fail(`entry version: expected ${ENTRY_VERSION}, found ${version}`);
  const count = reader.u16('requests of an entry');
  const envelopes: Envelope[] = [];
  for (let i = 0; i < count; i++) envelopes.push(readEnvelope(reader));
  reader.end('entry');
  return envelopes;
}
