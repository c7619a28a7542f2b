/** What a person sees when the server is up: a table of the models, the addresses, and something to try. */
import Table from 'cli-table3';
import type { ModelIndexEntry } from '@paceline/protocol';

export interface ReadyReport {
  readonly models: readonly ModelIndexEntry[];
  /** Folders of the model repositories, for when there is nothing in them. */
  readonly repositories: readonly string[];
  /** `host:port` of each front door that listens. */
  readonly addresses: readonly { readonly what: string; readonly address: string }[];
  /** A command that gives a meaningful answer; undefined where there is none. */
  readonly example: string | undefined;
}

export interface Terminal {
  /** Characters in a line. */
  readonly columns: number;
  readonly colour: boolean;
}

/** Borders of a table without lines between its rows. */
const PLAIN = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };
/** What four columns need beside their words: borders and a space on each side. */
const FRAME = 13;
const NARROWEST_REASON = 24;

/** Lines for standard output. */
export function readyText({ models, repositories, addresses, example }: ReadyReport, terminal: Terminal): string {
  const shown = models.length > 0 ? modelTable(models, terminal) : `No model is loaded: none found in ${repositories.join(', ')}.`;
  const width = Math.max(...addresses.map(({ what }) => what.length), 0);
  const lines = addresses.map(({ what, address }) => `  ${what.padEnd(width)}  ${address}`);
  return `${shown}\n\n${lines.join('\n')}\n${example === undefined ? '' : `\nTry it:\n\n  ${example}\n`}`;
}

/** The reason column is there only if a model has one, and takes what the terminal has left. */
function modelTable(models: readonly ModelIndexEntry[], { columns, colour }: Terminal): string {
  const rows = models.map(({ name, version = '', state = 'not loaded', reason = '' }) => [name, version, state, firstLine(reason)]);
  const withReason = rows.some((row) => row[3] !== '');
  const head = ['model', 'version', 'state', ...(withReason ? ['reason'] : [])];
  const taken = [0, 1, 2].map((column) => Math.max(...[head, ...rows].map((row) => row[column]!.length)));
  const left = columns - FRAME - taken.reduce((a, b) => a + b, 0);
  const table = new Table({
    head,
    chars: PLAIN,
    style: { head: colour ? ['bold'] : [], border: colour ? ['grey'] : [] },
    colWidths: withReason ? [null, null, null, Math.max(NARROWEST_REASON, left) + 2] : [],
    wordWrap: true,
  });
  for (const row of rows) table.push(row.slice(0, head.length));
  return table.toString();
}

/** The table shows the gist of a reason; the log and the repository index have all of it. */
function firstLine(text: string): string {
  const line = text.split('\n').find((l) => l.trim() !== '') ?? '';
  return line.length > 180 ? `${line.slice(0, 179)}…` : line;
}
