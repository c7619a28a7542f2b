/**
 * `pnpm bench`: runs the chosen scenarios one after the other, prints each figure beside its target and writes the
 * results. Ends with status 1 when a scenario could not be measured; a missed target is a result, not an error.
 */
import { existsSync } from 'node:fs';
import { Generator } from './generators/generator.js';
import { machineFacts } from './measure/machine.js';
import { HELP, parseOptions, type BenchOptions } from './options.js';
import { figureTable, scenarioText } from './report/tables.js';
import { writeRun, type Run } from './report/write.js';
import { SCENARIOS } from './scenarios/index.js';
import type { ScenarioResult } from './scenarios/scenario.js';
import { CAN_PIN, endChildrenWithThisProcess, pinSelf } from './targets/pinned.js';

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

async function runAll(options: BenchOptions): Promise<Run> {
  const startedAt = new Date();
  endChildrenWithThisProcess();
  pinSelf(options.generatorCore);
  const generator = await Generator.start(options.generatorCore);
  const results: ScenarioResult[] = [];
  const failures: { scenario: string; error: string }[] = [];
  try {
    for (const scenario of options.only) {
      say(`\n${scenario}`);
      try {
        const result = await SCENARIOS[scenario]({ options, generator, say });
        results.push(result);
        say(scenarioText(result));
      } catch (error) {
        failures.push({ scenario, error: String(error) });
        say(`could not be measured: ${String(error)}`);
      }
    }
  } finally {
    await generator.stop();
  }
  return { startedAt, machine: machineFacts(), options, results, failures };
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    say(HELP);
    return;
  }
  if (!existsSync(options.serverEntry)) throw new Error(`--server: no file ${options.serverEntry}; build the server first`);
  const { cpu, cores, node, revision, loadAverage } = machineFacts();
  say(`${cpu}, ${cores} cores, Node ${node}, revision ${revision}, load ${loadAverage.toFixed(2)}`);
  say(
    `${options.rounds} round(s) of ${options.measureMs} ms, send times from seed ${options.seed}${options.quick ? ' (quick: not a measurement)' : ''}`,
  );
  if (!CAN_PIN) say('no taskset here: processes float over the cores, ratios are rough');
  const run = await runAll(options);
  say(`\n${figureTable(run.results.flatMap((result) => result.figures))}`);
  for (const { scenario, error } of run.failures) say(`${scenario} could not be measured: ${error}`);
  for (const file of writeRun(run)) say(file);
  if (run.failures.length > 0) process.exitCode = 1;
}

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
