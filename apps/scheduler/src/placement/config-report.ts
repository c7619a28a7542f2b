/** Says what is wrong with, or of no use in, a model: one finding each, with its place in the file where it has one. */
import type { ConfigIssue, ConfigWarning } from '@paceline/core';
import type { ConfigText, IgnoredEntry } from '@paceline/model-repository';
import { ServingError } from '@paceline/protocol';

/** One thing worth telling the author of a model. */
export interface Finding {
  /** As messages call it, e.g. `resnet/config.pbtxt`; undefined where it is about no file, or about one that is missing. */
  readonly file: string | undefined;
  /** From 1; undefined where the file does not state the field. */
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** Path from the root of the configuration, e.g. `input[0].dims`; "" = the whole. */
  readonly field: string;
  readonly message: string;
  /** Set where the text itself is malformed; elsewhere the message says both. */
  readonly expected: string | undefined;
  readonly found: string | undefined;
  /** What to write instead, when that is known. */
  readonly hint: string | undefined;
}

/** A configuration that cannot be served, with everything that was found. */
export class InvalidConfigError extends ServingError {
  constructor(readonly findings: readonly Finding[]) {
    super('INVALID_ARGUMENT', findings.map(formatFinding).join('; '), { reason: 'invalid_model_config' });
  }
}

/** A finding that has no place in a configuration. */
export function plainFinding(message: string): Finding {
  return {
    file: undefined,
    line: undefined,
    column: undefined,
    field: '',
    message,
    expected: undefined,
    found: undefined,
    hint: undefined,
  };
}

/** @param text undefined for a configuration without a file: the fields then have no place */
export function findingOf(issue: ConfigIssue | ConfigWarning, text: ConfigText | undefined): Finding {
  const place = text?.locate(issue.path);
  return {
    ...plainFinding(issue.message),
    file: text?.file,
    line: place?.line,
    column: place?.column,
    field: issue.path,
    hint: 'hint' in issue ? issue.hint : undefined,
  };
}

export function ignoredFinding({ entry, reason }: IgnoredEntry): Finding {
  return plainFinding(`'${entry}' is ignored: ${reason}`);
}

/** `resnet/config.pbtxt:5:41 input[0].dims` where the text states the field, the file where not, "" without a file. */
export function formatPlace({ file, line, column, field }: Finding): string {
  if (file === undefined) return field;
  const place = line === undefined ? file : `${file}:${line}:${column ?? 1}`;
  return field === '' ? place : `${place} ${field}`;
}

/** Message, what to write instead, place. */
export function formatFinding(finding: Finding): string {
  const place = formatPlace(finding);
  return `${finding.message}${finding.hint === undefined ? '' : ` (${finding.hint})`}${place === '' ? '' : ` [${place}]`}`;
}
