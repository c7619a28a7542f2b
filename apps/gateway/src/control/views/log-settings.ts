/**
 * The log settings as both protocols read and change them. Names, texts and what is ignored are Triton's; a change is
 * taken whole or not at all.
 */
import { ServingError } from '@paceline/protocol';
import { LOG_LEVELS, LOG_MODULES, type LogLevel, type LogModule, type LogSettings, type LogSwitches } from '@paceline/telemetry';

/** In Triton's order. */
export interface LogSettingsView {
  readonly log_file: string;
  readonly log_info: boolean;
  readonly log_warning: boolean;
  readonly log_error: boolean;
  readonly log_verbose_level: number;
  readonly log_format: 'default' | 'ISO8601';
}

export function logSettingsView({ file, switches }: LogSettings): LogSettingsView {
  return {
    log_file: file,
    log_info: switches.info,
    log_warning: switches.warning,
    log_error: switches.error,
    log_verbose_level: switches.verbose,
    log_format: switches.format,
  };
}

type Field = Exclude<keyof LogSettingsView, 'log_file'>;

const SWITCHES = [
  ['log_info', 'info'],
  ['log_warning', 'warning'],
  ['log_error', 'error'],
] as const;

const refuse = (message: string): never => {
  throw new ServingError('INVALID_ARGUMENT', message, { reason: 'invalid_log_setting' });
};

/**
 * @param badType the protocol's text for a value of another type than `expected`
 * @throws ServingError UNIMPLEMENTED for the file, INVALID_ARGUMENT for any other value that cannot be
 */
export function changeLogSettings(
  settings: LogSettings,
  wanted: Readonly<Record<string, unknown>>,
  badType: (field: Field, expected: 'boolean' | 'unsigned-integer' | 'string') => string,
): void {
  if (wanted['log_file'] !== undefined) {
    throw new ServingError('UNIMPLEMENTED', 'log file location can not be updated through network protocol', { reason: 'log_file_fixed' });
  }
  const changes: { -readonly [Name in keyof LogSwitches]?: LogSwitches[Name] } = {};
  for (const [field, name] of SWITCHES) {
    const value = wanted[field];
    if (typeof value === 'boolean') changes[name] = value;
    else if (value !== undefined) refuse(badType(field, 'boolean'));
  }
  const { log_verbose_level: level, log_format: format } = wanted;
  if (typeof level === 'number' && Number.isSafeInteger(level) && level >= 0) changes.verbose = level;
  else if (level !== undefined) refuse(badType('log_verbose_level', 'unsigned-integer'));
  if (format === 'default' || format === 'ISO8601') changes.format = format;
  else if (typeof format === 'string') refuse(`invalid argument for --log_format, got: ${format}`);
  else if (format !== undefined) refuse(badType('log_format', 'string'));
  settings.change(changes);
}

/** Levels of modules; null = as the rest of the server. Paceline's own. */
export interface LogModulesView {
  readonly modules: Readonly<Record<LogModule, LogLevel | null>>;
}

export function logModulesView(settings: LogSettings): LogModulesView {
  const levels = LOG_MODULES.map((module) => [module, settings.levelOf(module) ?? null] as const);
  return { modules: Object.fromEntries(levels) as Record<LogModule, LogLevel | null> };
}

const isModule = (name: string): name is LogModule => (LOG_MODULES as readonly string[]).includes(name);
const isLevel = (value: unknown): value is LogLevel => (LOG_LEVELS as readonly unknown[]).includes(value);

/** @throws ServingError INVALID_ARGUMENT for a module or a level that does not exist; nothing is changed then */
export function changeLogModules(settings: LogSettings, wanted: Readonly<Record<string, unknown>>): void {
  const changes: [LogModule, LogLevel | undefined][] = [];
  for (const [name, level] of Object.entries(wanted)) {
    if (!isModule(name)) return refuse(`unknown log module '${name}', expected one of ${LOG_MODULES.join(', ')}`);
    if (level !== null && !isLevel(level))
      return refuse(
        `invalid level for log module '${name}': expected one of ${LOG_LEVELS.join(', ')}, or null for that of the server, found ${JSON.stringify(level)}`,
      );
    changes.push([name, level ?? undefined]);
  }
  for (const [module, level] of changes) settings.setLevel(module, level);
}
