/**
 * From the words of a command line to the value of each flag. Every violation is reported at once, and flags of Triton
 * without effect cause one warning each; what the values mean together is for the caller.
 */
import { unusedBackendSettings, unusedMetricSettings, type Contradiction } from './contradictions.js';
import { FLAG_NAMES, FLAGS, type FlagName, type FlagValues } from './flag-table.js';
import type { Flag } from './flag.js';
import { readArguments, type GivenValue } from './read-arguments.js';

export interface ParsedFlags {
  readonly help: boolean;
  readonly values: FlagValues;
  /** Flags that were given, and how each was written. */
  readonly given: ReadonlyMap<FlagName, readonly GivenValue[]>;
  readonly warnings: readonly string[];
  /** All that is wrong: of words, of single flags, and of `more` where it does not lie between flags that are wrong already. */
  errorsWith(more: readonly Contradiction[]): readonly string[];
}

/** @param env where `PACELINE_HTTP_PORT` stands for `--http-port` and so on; a flag given on the command line wins */
export function parseFlags(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ParsedFlags {
  const given = readArguments(argv, env);
  const read = FLAG_NAMES.map((name) => ({ name, ...readFlag(FLAGS[name], given.values.get(name) ?? []) }));
  const values = Object.fromEntries(read.map(({ name, value }) => [name, value])) as unknown as FlagValues;
  const faulty = new Set(read.filter(({ errors }) => errors.length > 0).map(({ name }) => name));
  return {
    help: given.help,
    values,
    given: given.values,
    warnings: [...read.flatMap((flag) => flag.warnings), ...unusedBackendSettings(values), ...unusedMetricSettings(values)],
    errorsWith: (more) => [
      ...given.errors,
      ...read.flatMap((flag) => flag.errors),
      ...more.filter(({ between }) => !between.some((name) => faulty.has(name))).map(({ text }) => text),
    ],
  };
}

/** What was given for one flag. A faulty text is left out of the value, so that other flags can be checked against it. */
function readFlag(row: Flag, given: readonly GivenValue[]): { value: unknown; errors: string[]; warnings: string[] } {
  const errors: string[] = [];
  const warnings: string[] = [];
  const parsed: unknown[] = [];
  for (const { text, source } of given) {
    const result = row.type.schema.safeParse(text);
    if (result.success) parsed.push(result.data);
    else errors.push(`${source}: ${result.error.issues.map((issue) => issue.message).join('; ')}, found '${withoutPassword(text)}'`);
  }
  const byDefault = row.repeatable || row.default === undefined ? undefined : row.type.schema.parse(row.default);
  const last = given.at(-1);
  if (last !== undefined && errors.length === 0) {
    const { status } = row;
    if (status.kind === 'without-effect') warnings.push(`${last.source} has no effect: ${status.reason}`);
    if (status.kind === 'refused' && (byDefault === undefined || byDefault !== parsed.at(-1))) {
      errors.push(`${last.source}=${last.text} is refused: ${status.reason}`);
    }
  }
  return { value: row.repeatable ? parsed : parsed.length > 0 ? parsed.at(-1) : byDefault, errors, warnings };
}

/** Messages end in logs, and a URL may hold a password. */
function withoutPassword(text: string): string {
  return text.replace(/:[^/@]*@/g, ':***@');
}

/** Freezes plain objects and arrays all the way down; maps stay readable only by their type. */
export function deepFreeze<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part as object);
  return Object.freeze(value);
}
