/** The reply of XREAD for one stream, taken apart. */
import { ENTRY_FIELD } from './partition-writer.js';

export interface StreamEntry {
  readonly id: string;
  /** The packed entry; undefined where the entry has not the one field that it should have. */
  readonly bytes: Buffer | undefined;
}

/** @param reply of commandBuffer: null = nothing came in time. @throws Error for a reply of another shape */
export function entriesOf(reply: unknown): readonly StreamEntry[] {
  if (reply === null) return [];
  const entries: unknown = Array.isArray(reply) && Array.isArray(reply[0]) ? reply[0][1] : undefined;
  if (!Array.isArray(entries)) throw new Error('XREAD gave a reply of an unknown shape');
  return entries.map(entryOf);
}

function entryOf(entry: unknown): StreamEntry {
  if (!Array.isArray(entry) || !Buffer.isBuffer(entry[0])) throw new Error('XREAD gave an entry of an unknown shape');
  const id = entry[0].toString('latin1');
  const fields: unknown = entry[1];
  if (!Array.isArray(fields) || fields.length !== 2 || String(fields[0]) !== ENTRY_FIELD || !Buffer.isBuffer(fields[1]))
    return { id, bytes: undefined };
  return { id, bytes: fields[1] };
}
