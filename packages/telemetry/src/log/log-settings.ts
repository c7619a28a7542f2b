/**
 * Which events are logged now. The switches of Triton hold for the whole server; a module may have a level of its own,
 * which then stands for all of them. Invariant: a fatal event is always logged.
 */

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Parts of the server that log under a name of their own. */
export const LOG_MODULES = ['http', 'grpc', 'control', 'models', 'worker', 'metrics'] as const;
export type LogModule = (typeof LOG_MODULES)[number];

export interface LogSwitches {
  readonly info: boolean;
  readonly warning: boolean;
  readonly error: boolean;
  /** 0 = off; 1 adds debug, 2 and above trace. */
  readonly verbose: number;
  /** Triton's name for the form of a line; a line has the same form under either. */
  readonly format: 'default' | 'ISO8601';
}

const RANK = new Map<LogLevel, number>(LOG_LEVELS.map((level, rank) => [level, rank]));

export class LogSettings {
  #switches: LogSwitches;
  readonly #modules = new Map<LogModule, LogLevel>();

  constructor(
    switches: LogSwitches,
    /** Path of the file lines go to; "" = standard error. Fixed at start. */
    readonly file: string,
  ) {
    this.#switches = switches;
  }

  get switches(): LogSwitches {
    return this.#switches;
  }

  change(switches: Partial<LogSwitches>): void {
    this.#switches = { ...this.#switches, ...switches };
  }

  /** undefined = as the rest of the server. */
  levelOf(module: LogModule): LogLevel | undefined {
    return this.#modules.get(module);
  }

  setLevel(module: LogModule, level: LogLevel | undefined): void {
    if (level === undefined) this.#modules.delete(module);
    else this.#modules.set(module, level);
  }

  isEnabled(level: LogLevel, module: LogModule | undefined): boolean {
    const lowest = module === undefined ? undefined : this.#modules.get(module);
    if (lowest !== undefined) return RANK.get(level)! >= RANK.get(lowest)!;
    const { verbose, info, warning, error } = this.#switches;
    switch (level) {
      case 'trace':
        return verbose >= 2;
      case 'debug':
        return verbose >= 1;
      case 'info':
        return info;
      case 'warn':
        return warning;
      case 'error':
        return error;
      case 'fatal':
        return true;
    }
  }
}
