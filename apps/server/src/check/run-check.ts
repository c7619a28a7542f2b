/** `paceline check`: reads its arguments, checks, prints. Returns the exit code. */
import { sourceOptions } from '@paceline/scheduler';
import { detectGpus } from '@paceline/worker';
import { CHECK_HELP, readCheckArguments } from './arguments.js';
import { checkRepositories, type CheckReport } from './check.js';
import { reportText } from './report-text.js';

export interface CheckOutput {
  /** Writes to standard output. */
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly colour: boolean;
  readonly width: number;
}

export async function runCheck(argv: readonly string[], env: NodeJS.ProcessEnv, { out, err, colour, width }: CheckOutput): Promise<number> {
  const read = readCheckArguments(argv, env);
  if (read.kind === 'help') {
    out(CHECK_HELP);
    return 0;
  }
  if (read.kind === 'errors') {
    for (const error of read.errors) err(`paceline: ${error}\n`);
    return 1;
  }
  const { directories, options, json, warnings } = read;
  for (const warning of warnings) err(`paceline: ${warning}\n`);
  if (directories.length === 0) {
    out(
      json
        ? `${JSON.stringify({ ok: true, models: [], errors: [], warnings: [] })}\n`
        : 'The flags are right. Name a directory to check its models.\n',
    );
    return 0;
  }
  const { configName } = options.repository;
  const completion = sourceOptions(options);
  const devices = { gpus: await detectGpus({ simulated: options.simulatedGpus, env }), cpuInstanceCount: completion.cpuInstanceCount ?? 1 };
  const report = await checkRepositories(directories, { ...completion, devices, ...(configName === undefined ? {} : { configName }) });
  out(json ? reportJson(report) : reportText(report, { colour, width }));
  return report.errors.length > 0 ? 1 : 0;
}

/** Everything that is not known is null, so that each finding has the same members. */
function reportJson({ models, errors, warnings }: CheckReport): string {
  const plain = (_key: string, value: unknown): unknown => (value === undefined ? null : value);
  return `${JSON.stringify({ ok: errors.length === 0, models, errors, warnings }, plain, 2)}\n`;
}
