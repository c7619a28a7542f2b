/**
 * The main function of a process of a cluster: reads the command line, starts, waits for a signal, drains, and says by its
 * exit code how that went. A second signal ends it at once.
 */
import { parseClusterOptions, type ClusterServeOptions } from '@paceline/config';
import { ServingError } from '@paceline/protocol';
import { createLog, type Log } from '@paceline/telemetry';
import { scheduleAsBatch } from './batch-scheduling.js';
import { waitForSignal } from './signals.js';
import { StartError } from './start-error.js';

/** 128 + 15, what a shell shows for SIGTERM: the drain was cut short by a second signal. */
const EXIT_CUT_SHORT = 143;

/** What runs. */
export interface RunningProcess {
  /** Fields of the log line that says that it runs: addresses, its id. */
  readonly startedAs: Readonly<Record<string, unknown>>;
  /** Work that is accepted and not finished. */
  readonly unfinished: number;
  /**
   * Takes nothing new, finishes what it has, then closes everything.
   * @returns how much was given up because `limitMs` milliseconds were over
   */
  drain(limitMs: number): Promise<number>;
}

export interface ProcessDefinition {
  /** gateway, scheduler or worker */
  readonly program: string;
  readonly start: (options: ClusterServeOptions, log: Log) => Promise<RunningProcess>;
}

/** @returns the exit code: 0 when nothing was given up */
export async function runProcess(
  { program, start }: ProcessDefinition,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const parsed = parseClusterOptions(program, argv, env);
  if (parsed.kind === 'help') {
    process.stdout.write(parsed.text);
    return 0;
  }
  if (parsed.kind === 'errors') {
    for (const error of parsed.errors) process.stderr.write(`${program}: ${error}\n`);
    return 1;
  }
  const { options, warnings } = parsed;
  const log = createLog(options.log);
  for (const warning of warnings) log.logger.warn(warning);
  try {
    return await run(program, () => start(options, log), options, log);
  } catch (error) {
    // Both are written for people; anything else is a bug and keeps its stack.
    if (!(error instanceof StartError) && !(error instanceof ServingError)) throw error;
    process.stderr.write(`${program}: ${error.message}\n`);
    return 1;
  }
}

async function run(program: string, start: () => Promise<RunningProcess>, options: ClusterServeOptions, { logger }: Log): Promise<number> {
  let cutShort = (): void => process.exit(EXIT_CUT_SHORT);
  const signalled = waitForSignal((signal) => {
    logger.warn({ signal }, 'second signal: ending at once');
    cutShort();
  });
  if (options.cpuScheduling === 'batch') scheduleAsBatch();
  const running = await start();
  cutShort = () => {
    logger.error({ unfinished: running.unfinished }, 'ended before everything was finished');
    process.exit(EXIT_CUT_SHORT);
  };
  logger.info(running.startedAs, `${program} runs`);
  const signal = await signalled;
  logger.info({ signal, unfinished: running.unfinished }, 'draining');
  const dropped = await running.drain(options.exitTimeoutSecs * 1000);
  if (dropped > 0) {
    logger.error({ dropped, exitTimeoutSecs: options.exitTimeoutSecs }, 'drain limit reached: work was given up');
    return 1;
  }
  logger.info('drained');
  return 0;
}
