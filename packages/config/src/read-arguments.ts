/**
 * From words to flags: finds for each flag the texts given for it, on the command line or in the environment. Knows
 * nothing of what the texts mean.
 */
import { environmentName, findFlag, FLAG_ALIASES, FLAG_NAMES, FLAGS, type FlagName } from './flag-table.js';
import { nearest } from './nearest.js';

/** One text for a flag, and how the user would recognise it in a message. */
export interface GivenValue {
  readonly text: string;
  /** `--http-port` or `PACELINE_HTTP_PORT`. */
  readonly source: string;
}

export interface GivenArguments {
  readonly help: boolean;
  readonly values: ReadonlyMap<FlagName, readonly GivenValue[]>;
  readonly errors: readonly string[];
}

/**
 * Reads `--flag=value`, `--flag value` and, for switches, `--flag` alone. What the command line gives for a flag
 * replaces what the environment says.
 */
export function readArguments(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): GivenArguments {
  const values = new Map<FlagName, GivenValue[]>();
  const errors: string[] = [];
  let help = false;
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? '';
    if (word === '--help' || word === '-h') {
      help = true;
      continue;
    }
    if (!word.startsWith('--') || word === '--') {
      errors.push(`unexpected argument '${word}'; flags start with two dashes and --help lists them`);
      continue;
    }
    const [written, inline] = splitOnce(word.slice(2));
    const name = findFlag(written);
    const next = argv[i + 1];
    const takesNext =
      inline === undefined && next !== undefined && !next.startsWith('--') && (name === undefined || isValueFor(name, next));
    if (takesNext) i++;
    if (name === undefined) {
      const meant = nearest(written, [...FLAG_NAMES, ...Object.keys(FLAG_ALIASES), 'help']);
      errors.push(`unknown flag --${written}${meant === undefined ? '; --help lists all flags' : `; did you mean --${meant}?`}`);
      continue;
    }
    const text = inline ?? (takesNext ? next : FLAGS[name].type.isSwitch ? 'true' : undefined);
    if (text === undefined) {
      errors.push(`--${written} needs a value: --${written}=${FLAGS[name].type.placeholder}`);
      continue;
    }
    const given = values.get(name) ?? [];
    given.push({ text, source: `--${written}` });
    values.set(name, given);
  }
  for (const name of FLAG_NAMES) {
    const text = env[environmentName(name)];
    if (text === undefined || text === '' || values.has(name)) continue;
    values.set(name, [{ text, source: environmentName(name) }]);
  }
  return { help, values, errors };
}

/** A switch takes the next word only when that is a truth value, so that a stray word is reported as such. */
function isValueFor(name: FlagName, word: string): boolean {
  return !FLAGS[name].type.isSwitch || FLAGS[name].type.schema.safeParse(word).success;
}

function splitOnce(word: string): [string, string | undefined] {
  const at = word.indexOf('=');
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}
