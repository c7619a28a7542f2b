/**
 * The log: one JSON line per event on standard error or in a file, readable lines instead where a person watches a
 * terminal. Standard output belongs to what a command prints.
 */
import { createRequire } from 'node:module';
import { destination, pino, stdTimeFunctions, type DestinationStream, type Level, type Logger } from 'pino';

export type { Logger } from 'pino';

/** Which events are logged; each level is switched by itself, as Triton's `--log-*` flags do. */
export interface LoggerOptions {
  /** 0 = off; 1 adds debug, 2 and above trace. */
  readonly verbose: number;
  readonly info: boolean;
  readonly warning: boolean;
  readonly error: boolean;
  /** Path of a file that lines are appended to; `undefined` = standard error. */
  readonly file: string | undefined;
}

/** Nothing is logged: for tests. */
export const SILENT: LoggerOptions = { verbose: 0, info: false, warning: false, error: false, file: undefined };

/** Fatal events are always logged. Lines are written before the call returns, so none is lost at exit. */
export function createLogger(options: LoggerOptions): Logger {
  const enabled = new Set<Level>(['fatal']);
  if (options.error) enabled.add('error');
  if (options.warning) enabled.add('warn');
  if (options.info) enabled.add('info');
  if (options.verbose >= 1) enabled.add('debug');
  if (options.verbose >= 2) enabled.add('trace');
  const order: readonly Level[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];
  return pino(
    {
      level: order.find((level) => enabled.has(level)) ?? 'fatal',
      base: undefined,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      hooks: {
        logMethod(args, method, level) {
          if (enabled.has(pino.levels.labels[level] as Level)) method.apply(this, args);
        },
      },
    },
    output(options.file),
  );
}

function output(file: string | undefined): DestinationStream {
  if (file === undefined && process.stderr.isTTY) {
    // Only a terminal needs it, so nothing else pays for loading it.
    const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
    return pretty({ destination: 2, sync: true, colorize: true, translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname' });
  }
  return destination({ dest: file ?? 2, sync: true, mkdir: true });
}
