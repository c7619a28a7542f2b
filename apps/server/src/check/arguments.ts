/** Reads the words after `paceline check`: directories first, then flags of `paceline serve`, and `--json` anywhere. */
import { parseServeOptions, type ServeOptions } from '@paceline/config';

export const CHECK_HELP = `Usage: paceline check [directory...] [--json] [flags of serve]

Reads model repositories as the server would and prints everything that is wrong with them, with file, line and column,
without starting a server. A directory is a model repository or the folder of one model.

  --json   print the findings as one JSON document
  --help   show this text

Flags of serve that change what a configuration means count, e.g. --disable-auto-complete-config. Without a directory
the repositories of --model-repository are checked; without those only the flags themselves.

Exit code: 0 when nothing keeps a model from being served, else 1. Warnings do not count.
`;

export type CheckArguments =
  | { readonly kind: 'help' }
  | { readonly kind: 'errors'; readonly errors: readonly string[] }
  | {
      readonly kind: 'check';
      readonly json: boolean;
      /** As written. */
      readonly directories: readonly string[];
      readonly options: ServeOptions;
      /** About the flags. */
      readonly warnings: readonly string[];
    };

export function readCheckArguments(argv: readonly string[], env: NodeJS.ProcessEnv): CheckArguments {
  if (argv.includes('--help') || argv.includes('-h')) return { kind: 'help' };
  const words = argv.filter((word) => word !== '--json');
  const firstFlag = words.findIndex((word) => word.startsWith('-'));
  const count = firstFlag === -1 ? words.length : firstFlag;
  const parsed = parseServeOptions(words.slice(count), env);
  if (parsed.kind === 'help') return parsed;
  if (parsed.kind === 'errors') return parsed;
  const { options, warnings } = parsed;
  const directories = [...new Set([...words.slice(0, count), ...options.repository.directories])];
  return { kind: 'check', json: argv.includes('--json'), directories, options, warnings };
}
