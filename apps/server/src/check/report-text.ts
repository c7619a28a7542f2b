/** Shows the findings of a check to a person: by model, each with its place, the line it is about, and what to write. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { styleText } from 'node:util';
import type { CheckFinding, CheckReport } from './check.js';

export interface TextOptions {
  readonly colour: boolean;
  /** Columns of the terminal. */
  readonly width: number;
}

type Style = Parameters<typeof styleText>[0];

/** Longest list of models without remarks that is written out. */
const MOST_NAMES = 12;

export function reportText(report: CheckReport, { colour, width }: TextOptions): string {
  const paint = (style: Style, text: string): string => (colour ? styleText(style, text, { validateStream: false }) : text);
  const columns = Math.max(40, Math.min(width, 110));
  const show = (finding: CheckFinding, severity: 'error' | 'warning'): string => {
    const mark = severity === 'error' ? paint(['bold', 'red'], 'error') : paint(['bold', 'yellow'], 'warning');
    const { line, column, field, hint } = finding;
    const file = finding.file && relative(process.cwd(), finding.file);
    const place = file && (line === undefined ? file : `${file}:${line}:${column}`);
    const head = [mark, field === '' ? '' : paint('bold', field), place === undefined ? '' : paint('cyan', place)].filter(
      (part) => part !== '',
    );
    const lines = [`  ${head.join('  ')}`, ...wrap(finding.message, columns - 4).map((text) => `    ${text}`), ...excerpt(finding, paint)];
    if (hint !== undefined) lines.push(...wrap(`hint: ${hint}`, columns - 4).map((text) => `    ${paint('green', text)}`));
    return lines.join('\n');
  };
  const { models, errors, warnings } = report;
  const groups = [undefined, ...models].map((model) => ({
    model,
    shown: [
      ...errors.filter((f) => f.model === model).map((f) => show(f, 'error')),
      ...warnings.filter((f) => f.model === model).map((f) => show(f, 'warning')),
    ],
  }));
  const blocks = groups
    .filter(({ shown }) => shown.length > 0)
    .map(({ model, shown }) => [paint('bold', model ?? 'repository'), ...shown].join('\n'));
  const fine = groups.flatMap(({ model, shown }) => (model !== undefined && shown.length === 0 ? [model] : []));
  if (fine.length > 0) blocks.push(`${paint('green', 'ok')}  ${listed(fine)}`);
  blocks.push(paint(['bold', errors.length > 0 ? 'red' : 'green'], summary(report)));
  return `${blocks.join('\n\n')}\n`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

function summary({ models, errors, warnings }: CheckReport): string {
  return `${counted(models.length, 'model')}: ${counted(errors.length, 'error')}, ${counted(warnings.length, 'warning')}`;
}

function listed(names: readonly string[]): string {
  const rest = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

/** The line of the file with a caret below the place. */
function excerpt({ file, line, column }: CheckFinding, paint: (style: Style, text: string) => string): string[] {
  if (file === undefined || line === undefined || column === undefined) return [];
  const text = readLine(file, line);
  // A caret under a very long line would stand anywhere.
  if (text === undefined || text.length > 200) return [];
  const before = text.slice(0, column - 1).replaceAll(/[^\t]/g, ' ');
  const gutter = `${line}`;
  return [
    `    ${paint('dim', `${gutter} |`)} ${text}`,
    `    ${paint('dim', `${' '.repeat(gutter.length)} |`)} ${before}${paint('red', '^')}`,
  ];
}

function readLine(file: string, line: number): string | undefined {
  try {
    return readFileSync(file, 'utf8').split(/\r?\n/)[line - 1];
  } catch {
    return undefined;
  }
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let line = '';
    for (const word of paragraph.split(' ')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line);
        line = word;
      } else {
        line = line === '' ? word : `${line} ${word}`;
      }
    }
    lines.push(line);
  }
  return lines;
}
