/**
 * The log: one JSON line per event on standard error or in a file, readable lines instead where a person watches a
 * terminal. Standard output belongs to what a command prints.
 */
import { createRequire } from 'node:module';
import { destination, pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino';
import { LogSettings, type LogLevel, type LogModule } from './log-settings.js';

export type { Logger } from 'pino';

/** Which events are logged; each level is switched by itself, as Triton's `--log-*` flags do. */
export interface LoggerOptions {
  /** 0 = off; 1 adds debug, 2 and above trace. */
  readonly verbose: number;
  readonly info: boolean;
  readonly warning: boolean;
  readonly error: boolean;
  readonly format?: 'default' | 'ISO8601';
  /** Path of a file that lines are appended to; `undefined` = standard error. */
  readonly file: string | undefined;
}

/** Set by a program that passes our standard error on to a terminal. */
const READABLE = 'PACELINE_LOG_READABLE';

/** Nothing is logged: for tests. */
export const SILENT: LoggerOptions = { verbose: 0, info: false, warning: false, error: false, file: undefined };

/** The log of a server, whose settings can be changed while it runs. */
export interface Log {
  readonly logger: Logger;
  readonly settings: LogSettings;
  /** The same log; its lines name the module, which can have a level of its own. */
  module(name: LogModule): Logger;
}

/** Where a module's loggers, and loggers made from them, find its name. */
const MODULE = Symbol('log module');
type ModuleLogger = Logger & { [MODULE]?: LogModule };

/** Fatal events are always logged. Lines are written before the call returns, so none is lost at exit. */
export function createLog({ verbose, info, warning, error, format = 'default', file }: LoggerOptions): Log {
  const settings = new LogSettings({ verbose, info, warning, error, format }, file ?? '');
  const logger = pino(
    {
      // Everything comes to the hook below, which knows what is wanted at the moment.
      level: 'trace',
      base: undefined,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      hooks: {
        logMethod(args, method, level) {
          const enabled = settings.isEnabled(pino.levels.labels[level] as LogLevel, (this as ModuleLogger)[MODULE]);
          if (enabled || isAudit(args[0])) method.apply(this, args);
        },
      },
    },
    output(file),
  );
  return {
    logger,
    settings,
    module(name) {
      const child: ModuleLogger = logger.child({ module: name });
      child[MODULE] = name;
      return child;
    },
  };
}

/** Who may change the settings of the log must not be able to hide who changed the server. */
function isAudit(fields: unknown): boolean {
  return typeof fields === 'object' && fields !== null && 'audit' in fields && fields.audit === true;
}

/** A log that nobody changes while it runs. */
export function createLogger(options: LoggerOptions): Logger {
  return createLog(options).logger;
}

function output(file: string | undefined): DestinationStream {
  if (file === undefined && (process.stderr.isTTY || process.env[READABLE] === 'true')) {
    // Only a terminal needs it, so nothing else pays for loading it.
    const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
    return pretty({
      destination: 2,
      sync: true,
      colorize: !process.env['NO_COLOR'],
      singleLine: true,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'pid,hostname',
    });
  }
  return destination({ dest: file ?? 2, sync: true, mkdir: true });
}
