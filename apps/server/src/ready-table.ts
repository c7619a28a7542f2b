/** What a person sees when the server is up: a table of the models, the addresses, and something to try. */
import Table from 'cli-table3';
import type { ModelIndexEntry } from '@paceline/protocol';

export interface ReadyReport {
  readonly models: readonly ModelIndexEntry[];
  /** `host:port` of each front door that listens. */
  readonly addresses: readonly { readonly what: string; readonly address: string }[];
  /** A command that gives a meaningful answer; undefined where the models are the user's own. */
  readonly example: string | undefined;
}

/** Borders of a table without lines between its rows. */
const PLAIN = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

/** Lines for standard output, without colour unless `colour`. */
export function readyText({ models, addresses, example }: ReadyReport, colour: boolean): string {
  const style = { head: colour ? ['bold'] : [], border: colour ? ['grey'] : [] };
  const table = new Table({ head: ['model', 'version', 'state', ''], chars: PLAIN, style, colWidths: [null, null, null, 64], wordWrap: true });
  for (const { name, version = '', state = 'not loaded', reason = '' } of models) table.push([name, version, state, firstLine(reason)]);
  const width = Math.max(...addresses.map(({ what }) => what.length), 0);
  const lines = addresses.map(({ what, address }) => `  ${what.padEnd(width)}  ${address}`);
  const shown = models.length > 0 ? table.toString() : 'No model is loaded.';
  return `${shown}\n\n${lines.join('\n')}\n${example === undefined ? '' : `\nTry it:\n\n  ${example}\n`}`;
}

/** The table shows the gist of a reason; the log and the repository index have all of it. */
function firstLine(text: string): string {
  const line = text.split('\n').find((l) => l.trim() !== '') ?? '';
  return line.length > 180 ? `${line.slice(0, 179)}…` : line;
}
