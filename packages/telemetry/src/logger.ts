/** One JSON line per event on stderr (stdout belongs to what a command prints). */
import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

/** @param level pino's: trace, debug, info, warn, error, silent. */
export function createLogger(level: string): Logger {
  return pino({ level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: false }));
}
