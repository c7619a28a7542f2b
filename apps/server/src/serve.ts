/** `paceline serve`: starts the server, shows what is ready, and ends it in good order. Returns the exit code. */
import { parseServeOptions, type ServeOptions } from '@paceline/config';
import { ServingError } from '@paceline/protocol';
import { createLog, type Log, type Logger } from '@paceline/telemetry';
import { startEmbeddedServer, type EmbeddedServer } from './embedded-server.js';
import { EXAMPLE_REPOSITORY, exampleCommand } from './example-repository.js';
import { scheduleAsBatch, StartError, waitForSignal } from '@paceline/nest-kit';
import { readyText } from './ready-table.js';

/** 128 + 15, what a shell shows for SIGTERM: the drain was cut short by a second signal. */
const EXIT_CUT_SHORT = 143;

/** @param argv the flags; @param env for `PACELINE_*` defaults of flags. */
export async function serve(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const parsed = parseServeOptions(argv, env);
  if (parsed.kind === 'help') {
    process.stdout.write(parsed.text);
    return 0;
  }
  if (parsed.kind === 'errors') {
    for (const error of parsed.errors) process.stderr.write(`paceline: ${error}\n`);
    return 1;
  }
  const { options, warnings } = parsed;
  const log = createLog(options.log);
  for (const warning of warnings) log.logger.warn(warning);
  try {
    return await run(options, log);
  } catch (error) {
    // Both are written for people; anything else is a bug and keeps its stack.
    if (!(error instanceof StartError) && !(error instanceof ServingError)) throw error;
    process.stderr.write(`paceline: ${error.message}\n`);
    return 1;
  }
}

async function run(options: ServeOptions, log: Log): Promise<number> {
  const { logger } = log;
  let cutShort = (): void => process.exit(EXIT_CUT_SHORT);
  const signalled = waitForSignal((signal) => {
    logger.warn({ signal }, 'second signal: ending at once');
    cutShort();
  });
  if (options.cpuScheduling === 'batch') scheduleAsBatch();
  const server = await startEmbeddedServer(options, log);
  cutShort = () => {
    logger.error({ dropped: server.unanswered }, 'ended before every request was answered');
    process.exit(EXIT_CUT_SHORT);
  };
  const started = await Promise.race([server.loadModels(), signalled]);
  if (typeof started !== 'string') {
    for (const warning of started.warnings) logger.warn(warning);
    const failed = started.models.filter(({ error }) => error !== undefined);
    if (failed.length > 0 && options.repository.exitOnError) {
      process.stderr.write(
        `${failedStartText(
          failed.map(({ model }) => model),
          options,
        )}\n`,
      );
      await server.drain(0);
      return 1;
    }
    announce(server, options, logger);
  }
  const signal = await signalled;
  logger.info({ signal, unanswered: server.unanswered }, 'draining');
  const dropped = await server.drain(options.exitTimeoutSecs * 1000);
  if (dropped > 0) {
    logger.error({ dropped, exitTimeoutSecs: options.exitTimeoutSecs }, 'drain limit reached: requests were dropped');
    return 1;
  }
  logger.info('drained');
  return 0;
}

/** The log has said why each model failed; this says what that means and what to do. */
function failedStartText(models: readonly string[], options: ServeOptions): string {
  const names = models.map((model) => `'${model}'`).join(', ');
  const check = repositoriesOf(options).join(' ');
  return [
    `paceline: ending: ${models.length === 1 ? `model ${names} cannot` : `models ${names} cannot`} be served, for the reasons logged above.`,
    `  Every fault with its line:  paceline check ${check}`,
    '  Serve the other models:     add --exit-on-error=false',
  ].join('\n');
}

function announce(server: EmbeddedServer, options: ServeOptions, logger: Logger): void {
  const { http, grpc, metrics } = server.addresses;
  logger.info({ http, grpc, metrics }, 'serving');
  const scheme = options.http.tls === undefined ? 'http' : 'https';
  const addresses = [
    { what: 'HTTP', address: http && `${scheme}://${http}/v2` },
    { what: 'gRPC', address: grpc },
    { what: 'metrics', address: metrics && `http://${metrics}/metrics` },
  ].flatMap(({ what, address }) => (address ? [{ what, address }] : []));
  const open = options.http.tls === undefined && options.access.keyFile === undefined;
  const report = {
    models: server.models.index(false),
    repositories: repositoriesOf(options),
    addresses,
    example: http !== undefined && open ? exampleCommand(http, server.models) : undefined,
  };
  const { columns = 100, isTTY } = process.stdout;
  process.stdout.write(`\n${readyText(report, { columns, colour: isTTY === true && !process.env['NO_COLOR'] })}\n`);
}

function repositoriesOf({ repository }: ServeOptions): readonly string[] {
  return repository.directories.length > 0 ? repository.directories : [EXAMPLE_REPOSITORY];
}
