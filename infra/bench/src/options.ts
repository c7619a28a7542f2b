/** The command line of the benchmark. */
import { parseArgs } from 'node:util';
import { RESULTS_FOLDER, SERVER_ENTRY } from './paths.js';

export const SCENARIO_NAMES = [
  'mlp',
  'int8',
  'ocr',
  'tiny',
  'trees',
  'grpc',
  'latency',
  'open-loop',
  'memory',
  'overload',
  'objective',
  'pacing',
  'recovery',
  'overhead',
  'many',
  'loading',
  'cluster-cost',
  'cluster-threshold',
  'cluster-large',
  'cluster-scaling',
  'cluster-core',
  'cluster-scheduler',
  'cluster-failover',
] as const;
export type ScenarioName = (typeof SCENARIO_NAMES)[number];

export interface BenchOptions {
  readonly only: readonly ScenarioName[];
  readonly rounds: number;
  readonly quick: boolean;
  readonly serverEntry: string;
  /** Another server that `overhead` compares with; undefined = the same one with metrics switched off. */
  readonly baselineEntry: string | undefined;
  readonly serverCore: number;
  readonly generatorCore: number;
  readonly connections: number;
  readonly seed: number;
  readonly out: string;
  readonly warmupMs: number;
  readonly measureMs: number;
  /** Time for each batch size of the in-process limit. */
  readonly limitMs: number;
  readonly cycles: number;
}

export const HELP = `pnpm bench -- [flags]

  --only a,b           scenarios to run, of ${SCENARIO_NAMES.join(', ')} (default all)
  --rounds N           interleaved rounds (default 3, with --quick 1)
  --quick              short windows: a check that it works, not a measurement
  --connections N      closed-loop connections (default 64)
  --seed N             seed of the open loop's send times (default 1)
  --server FILE        entry file of the server (default apps/server/dist/main.js)
  --baseline FILE      entry file of an older server, for overhead (default: the same server without metrics)
  --server-core N      core of the server and everything it is compared with (default 0)
  --generator-core N   core of the generator (default 1)
  --out DIR            where results go (default infra/bench/results)
  --help
`;

function scenarioName(text: string): ScenarioName {
  const name = SCENARIO_NAMES.find((candidate) => candidate === text);
  if (name === undefined) throw new Error(`--only: expected some of ${SCENARIO_NAMES.join(', ')}, found "${text}"`);
  return name;
}

function wholeNumber(flag: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`--${flag}: expected a whole number, found "${text}"`);
  return Number(text);
}

/**
 * @param argv without the program; the `--` that package managers pass on is skipped.
 * @returns undefined when help was asked for.
 * @throws Error that names the flag, what was expected and what was found.
 */
export function parseOptions(argv: readonly string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    args: argv.filter((argument) => argument !== '--'),
    options: {
      only: { type: 'string', default: SCENARIO_NAMES.join(',') },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      connections: { type: 'string', default: '64' },
      seed: { type: 'string', default: '1' },
      server: { type: 'string', default: SERVER_ENTRY },
      baseline: { type: 'string' },
      'server-core': { type: 'string', default: '0' },
      'generator-core': { type: 'string', default: '1' },
      out: { type: 'string', default: RESULTS_FOLDER },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const { quick } = values;
  return {
    only: values.only.split(',').map(scenarioName),
    rounds: wholeNumber('rounds', values.rounds ?? (quick ? '1' : '3')),
    quick,
    serverEntry: values.server,
    baselineEntry: values.baseline,
    serverCore: wholeNumber('server-core', values['server-core']),
    generatorCore: wholeNumber('generator-core', values['generator-core']),
    connections: wholeNumber('connections', values.connections),
    seed: wholeNumber('seed', values.seed),
    out: values.out,
    warmupMs: quick ? 1000 : 2000,
    measureMs: quick ? 1500 : 5000,
    limitMs: quick ? 250 : 700,
    cycles: quick ? 20 : 200,
  };
}
