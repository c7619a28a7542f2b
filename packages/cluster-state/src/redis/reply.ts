/** What to say of a reply or a record that is not what we wrote: somebody else uses these keys. */
import { ServingError } from '@paceline/protocol';

/** @param found shown in the message, at most 100 characters of it */
export function unexpectedReply(what: string, found: unknown): ServingError {
  const text = (JSON.stringify(found) ?? 'nothing').slice(0, 100);
  return new ServingError('INTERNAL', `Redis ${what}: a record of another form than Paceline writes was found: ${text}`, {
    reason: 'redis_record',
  });
}

/** The object that a JSON text holds; undefined where it holds none. */
export function parseRecord(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
