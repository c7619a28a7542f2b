/**
 * Reads the command line of `paceline serve`. Every violation is reported at once, flags of Triton without effect
 * cause one warning each, and what comes out is frozen.
 */
import { contradictions, unusedBackendSettings, unusedMetricSettings } from './contradictions.js';
import { FLAG_NAMES, FLAGS, type FlagValues } from './flag-table.js';
import type { Flag } from './flag.js';
import { helpText } from './help-text.js';
import { readArguments, type GivenValue } from './read-arguments.js';
import type { ServeOptionsResult } from './serve-options.js';
import { toServeOptions } from './to-serve-options.js';

/**
 * @param argv the arguments after `serve`, e.g. `process.argv.slice(2)`
 * @param env where `PACELINE_HTTP_PORT` stands for `--http-port` and so on; a flag given on the command line wins
 */
export function parseServeOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ServeOptionsResult {
  const given = readArguments(argv, env);
  if (given.help) return { kind: 'help', text: helpText() };
  const read = FLAG_NAMES.map((name) => ({ name, ...readFlag(FLAGS[name], given.values.get(name) ?? []) }));
  const values = Object.fromEntries(read.map(({ name, value }) => [name, value])) as unknown as FlagValues;
  const faulty = new Set(read.filter(({ errors }) => errors.length > 0).map(({ name }) => name));
  const errors = [
    ...given.errors,
    ...read.flatMap((flag) => flag.errors),
    ...contradictions(values)
      .filter(({ between }) => !between.some((name) => faulty.has(name)))
      .map(({ text }) => text),
  ];
  if (errors.length > 0) return { kind: 'errors', errors };
  return {
    kind: 'options',
    options: deepFreeze(toServeOptions(values)),
    warnings: [...read.flatMap((flag) => flag.warnings), ...unusedBackendSettings(values), ...unusedMetricSettings(values)],
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
    else errors.push(`${source}: ${result.error.issues.map((issue) => issue.message).join('; ')}, found '${text}'`);
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

/** Freezes plain objects and arrays all the way down; maps stay readable only by their type. */
function deepFreeze<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part as object);
  return Object.freeze(value);
}
