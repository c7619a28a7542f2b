/** Writes issues and warnings of a configuration as text with their places in the file. */
import type { ConfigIssue, ConfigWarning } from '@paceline/core';
import type { ConfigText } from '@paceline/model-repository';

/** `resnet/config.pbtxt:5:41 input[0].dims` where the text states the field, the file where not, "" without a file. */
function placeOf(path: string, text: ConfigText | undefined): string {
  if (text === undefined) return path;
  const place = text.locate(path);
  const file = place === undefined ? text.file : `${text.file}:${place.line}:${place.column}`;
  return path === '' ? file : `${file} ${path}`;
}

function line(message: string, path: string, hint: string | undefined, text: ConfigText | undefined): string {
  const place = placeOf(path, text);
  return `${message}${hint === undefined ? '' : ` (${hint})`}${place === '' ? '' : ` [${place}]`}`;
}

/** All issues in one text, divided by `; `: message, what to write instead, place. */
export function formatIssues(issues: readonly ConfigIssue[], text: ConfigText | undefined): string {
  return issues.map((issue) => line(issue.message, issue.path, issue.hint, text)).join('; ');
}

/** One text a warning. */
export function formatWarnings(warnings: readonly ConfigWarning[], text: ConfigText | undefined): string[] {
  return warnings.map((warning) => line(warning.message, warning.path, undefined, text));
}
