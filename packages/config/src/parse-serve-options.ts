/** Reads the command line of `paceline serve`. What comes out is frozen. */
import { contradictions, type Contradiction } from './contradictions.js';
import { FLAGS } from './flag-table.js';
import { CLUSTER_GROUP } from './flags/cluster-flags.js';
import { helpText } from './help-text.js';
import { deepFreeze, parseFlags, type ParsedFlags } from './parse-flags.js';
import type { ServeOptionsResult } from './serve-options.js';
import { toServeOptions } from './to-serve-options.js';

/**
 * @param argv the arguments after `serve`, e.g. `process.argv.slice(2)`
 * @param env where `PACELINE_HTTP_PORT` stands for `--http-port` and so on; a flag given on the command line wins
 */
export function parseServeOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ServeOptionsResult {
  const parsed = parseFlags(argv, env);
  if (parsed.help) return { kind: 'help', text: helpText() };
  const errors = parsed.errorsWith([...clusterFlagsGiven(parsed), ...contradictions(parsed.values)]);
  if (errors.length > 0) return { kind: 'errors', errors };
  return { kind: 'options', options: deepFreeze(toServeOptions(parsed.values)), warnings: parsed.warnings };
}

/** One process alone does nothing of what these flags ask for, and whoever gives them must know. */
function clusterFlagsGiven({ given }: ParsedFlags): Contradiction[] {
  return [...given].flatMap(([name, values]) =>
    FLAGS[name].group === CLUSTER_GROUP
      ? [
          {
            between: [],
            text: `${values[0]?.source ?? name} is for the processes of a cluster, and this is a server of one process: start a cluster with npm run cluster, or its gateways, schedulers and workers one by one`,
          },
        ]
      : [],
  );
}
