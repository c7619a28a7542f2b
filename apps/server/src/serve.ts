/** `paceline serve`: starts the server, shows what is ready, and ends it in good order. Returns the exit code. */
import { parseServeOptions, type ServeOptions } from '@paceline/config';
import { createLog, type Log, type Logger } from '@paceline/telemetry';
import { startEmbeddedServer, type EmbeddedServer } from './embedded-server.js';
import { exampleCommand } from './example-repository.js';
import { StartError } from './listen-error.js';
import { readyText } from './ready-table.js';
import { waitForSignal } from './shutdown.js';

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
    if (!(error instanceof StartError)) throw error;
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
      for (const { model, error } of failed) process.stderr.write(`paceline: model '${model}' cannot be served: ${error!.message}\n`);
      process.stderr.write('paceline: ending, because --exit-on-error is true; with --exit-on-error=false the other models are served\n');
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

function announce(server: EmbeddedServer, options: ServeOptions, logger: Logger): void {
  const { http, grpc, metrics } = server.addresses;
  logger.info({ http, grpc, metrics }, 'serving');
  const addresses = [
    { what: 'HTTP', address: http && `http://${http}/v2` },
    { what: 'gRPC', address: grpc },
    { what: 'metrics', address: metrics && `http://${metrics}/metrics` },
  ].flatMap(({ what, address }) => (address ? [{ what, address }] : []));
  const example = options.repository.directories.length === 0 && http ? exampleCommand(http) : undefined;
  process.stdout.write(`\n${readyText({ models: server.models.index(false), addresses, example }, process.stdout.isTTY === true)}\n`);
}
