/**
 * Writes the flag table as the section of the documentation that users read. It is made from the table alone, and a test
 * compares the two, so that the page cannot say something else than the processes do.
 */
import { environmentName, FLAG_NAMES, FLAGS, type FlagName } from '../flag-table.js';
import { FLAG_GROUPS, type Flag, type FlagGroup } from '../flag.js';

/** Between these lines the page is generated. */
export const BEGIN = '<!-- settings: written by packages/config/scripts/write-settings.mjs -->';
export const END = '<!-- end of settings -->';

/** Which processes go by the flags of a group; all of them take every flag. */
const READ_BY: Readonly<Record<FlagGroup, string>> = {
  Server: 'Read by every process.',
  'Model repository': 'Read by schedulers; gateways read `--strict-readiness`.',
  HTTP: 'Read by gateways.',
  gRPC: 'Read by gateways.',
  Metrics: 'Read by every process.',
  Access: 'Read by gateways.',
  Limits: 'Read by gateways; schedulers read `--request-timeout-ms`, which bounds their queues, too.',
  Logging: 'Read by every process; `--access-log` by gateways.',
  Traces: 'Read by every process; `--trace-sample-rate` by gateways.',
  Backends: 'Read by schedulers.',
  'Processes of a cluster': 'Read by every process of a cluster; the embedded server has no use for them.',
  'Other flags of Triton': 'Accepted so that a command line of Triton works as it is.',
};

export function settingsText(): string {
  const sections = FLAG_GROUPS.flatMap((group) => {
    const names = FLAG_NAMES.filter((name) => FLAGS[name].group === group);
    const served = names.filter((name) => FLAGS[name].status.kind === 'served');
    const others = names.filter((name) => FLAGS[name].status.kind !== 'served');
    return [
      `### ${group}`,
      READ_BY[group],
      ...(served.length === 0 ? [] : [layOut([['flag', 'value', 'default', 'meaning'], ...served.map(servedRow)])]),
      ...(others.length === 0 ? [] : [layOut([['flag', 'value', 'default', 'what becomes of it'], ...others.map(otherRow)])]),
    ];
  });
  return [BEGIN, ...sections, `In the environment \`--link-host\` is called \`${environmentName('link-host')}\`, and so on.`, END].join(
    '\n\n',
  );
}

/** @returns the page with the section as the table says it now. @throws Error where the page has no place for it */
export function withSettings(page: string): string {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error(`the page has no lines ${BEGIN} and ${END}`);
  return page.slice(0, from) + settingsText() + page.slice(to + END.length);
}

function servedRow(name: FlagName): string[] {
  return [...start(name), `${FLAGS[name].help}.`];
}

function otherRow(name: FlagName): string[] {
  const { status }: Flag = FLAGS[name];
  if (status.kind === 'served') throw new Error(`--${name} is served`);
  return [
    ...start(name),
    status.kind === 'refused' ? `**refused** unless it is the default: ${status.reason}` : `no effect: ${status.reason}`,
  ];
}

function start(name: FlagName): string[] {
  const row: Flag = FLAGS[name];
  const byDefault = row.repeatable ? (row.defaultNote ?? '') : (row.defaultNote ?? `\`${row.default}\``);
  return [`\`--${name}\``, `\`${row.type.placeholder}\`${row.repeatable ? ', repeatable' : ''}`, byDefault].map((cell) =>
    cell.replaceAll('|', '\\|'),
  );
}

/** As prettier does, so that the page is formatted. @param rows the first one is the head */
function layOut(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows.map((cells) => cells.map((cell) => cell.replaceAll('*', '\\*').replaceAll('\\*\\*', '**')));
  const widths = head.map((_, column) => Math.max(3, ...[head, ...body].map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n');
}
