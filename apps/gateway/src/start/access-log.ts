/** Opens the access log that the command line asks for. */
import type { Clock } from '@paceline/clock';
import type { ServeOptions } from '@paceline/config';
import { StartError } from '@paceline/nest-kit';
import type { Logger } from '@paceline/telemetry';
import { AccessLog } from '../access-log/access-log.js';

/** @returns undefined where none is wanted. @throws StartError where its file cannot be opened */
export function openAccessLog({ log }: ServeOptions, clock: Clock, logger: Logger): AccessLog | undefined {
  if (log.access === undefined) return undefined;
  try {
    return new AccessLog(log.access, clock, logger);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`cannot open the access log ${log.access}: ${text}; choose another file with --access-log`, { cause });
  }
}
