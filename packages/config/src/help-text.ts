/** `--help`: every flag, grouped, with its unit and default, in lines of at most 80 columns. */
import { FLAG_NAMES, FLAGS, type FlagName } from './flag-table.js';
import { FLAG_GROUPS, type Flag } from './flag.js';

const WIDTH = 80;
const SERVE_USAGE = [
  'Usage: npm start -- [flags]          set up what is missing, then serve',
  '       paceline serve [flags]        serve',
  '       npm run cluster -- [flags]    serve with several processes',
];
const INDENT = '      ';

/** @param usage lines; those of `paceline serve` by default */
export function helpText(usage: readonly string[] = SERVE_USAGE): string {
  const head = [
    ...usage,
    '',
    ...wrap(
      'Serves the models of one or more model repositories over HTTP and gRPC (the open inference protocol v2). ' +
        'Write --flag=value or --flag value; a switch alone means true. Each flag can also be given by the environment: ' +
        'PACELINE_HTTP_PORT stands for --http-port.',
      '',
    ),
  ];
  const groups = FLAG_GROUPS.map((group) => {
    const names = FLAG_NAMES.filter((name) => FLAGS[name].group === group);
    const served = names.filter((name) => FLAGS[name].status.kind === 'served');
    const rest = names.filter((name) => FLAGS[name].status.kind !== 'served');
    return ['', group, ...[...served, ...rest].flatMap(describe)];
  });
  return [...head, ...groups.flat(), ''].join('\n');
}

function describe(name: FlagName): string[] {
  const row: Flag = FLAGS[name];
  const byDefault = row.defaultNote ?? (row.repeatable ? '' : row.default);
  const notice =
    row.status.kind === 'served'
      ? ''
      : row.status.kind === 'refused'
        ? ` Refused: ${row.status.reason}.`
        : ` No effect: ${row.status.reason}.`;
  return [`  --${name}=${row.type.placeholder}`, ...wrap(`${row.help}. Default: ${byDefault}.${notice}`, INDENT)];
}

function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    const candidate = line === indent ? line + word : `${line} ${word}`;
    if (candidate.length > WIDTH && line !== indent) {
      lines.push(line);
      line = indent + word;
    } else {
      line = candidate;
    }
  }
  return [...lines, line];
}
