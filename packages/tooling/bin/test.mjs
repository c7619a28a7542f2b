// `npm test`: sets up what is missing and runs every check. The last line adds them up; a check that is no test suite
// counts as one. `--only <name>` and `--skip <name>` choose among the checks. `npm run test:full` (`--full`) adds what takes
// long: ten minutes of chaos, and the images and docker-compose for real.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { passSignalsOn, run, Stopped, stoppedBy } from '../setup/processes.mjs';
import { ensurePython } from '../setup/python.mjs';
import { ensureFaketime } from '../setup/faketime.mjs';
import { ensureRedis } from '../setup/redis.mjs';
import { checkMachine, ROOT, toolEnvironment } from '../setup/runtime.mjs';
import { SetupError } from '../setup/setup-error.mjs';
import { install, linkExampleModels, say } from '../setup/set-up.mjs';
import { withSetupLock } from '../setup/lock.mjs';
import { createTally } from '../setup/tally.mjs';

/** In this order. `task` is turbo's; a suite reports its tests one by one. */
const CHECKS = [
  { name: 'build', task: 'build', says: 'everything compiles' },
  { name: 'typecheck', task: 'typecheck', says: 'types, tests included' },
  { name: 'lint', task: 'lint', says: 'lint rules' },
  { name: 'architecture', task: 'architecture', says: 'who may import whom' },
  { name: 'unused', task: 'unused', says: 'files, exports and packages nobody uses' },
  { name: 'format', task: 'format', says: 'formatting' },
  { name: 'unit', task: 'test', filter: '!@paceline/e2e', isSuite: true, needsRedis: true, says: 'the tests beside the code' },
  {
    name: 'e2e',
    task: 'test',
    filter: '@paceline/e2e',
    isSuite: true,
    needsPython: true,
    needsRedis: true,
    needsFaketime: true,
    says: 'real processes and clients, Python ones too',
  },
  {
    name: 'chaos',
    task: 'test:chaos',
    filter: '@paceline/e2e',
    isSuite: true,
    isLong: true,
    needsRedis: true,
    says: 'a cluster and a server shaken under load for ten minutes',
  },
  {
    name: 'images',
    task: 'test:images',
    filter: '@paceline/images',
    isSuite: true,
    isLong: true,
    says: 'images and docker-compose, built and run',
  },
];

function chooseChecks() {
  const names = CHECKS.map(({ name }) => name);
  const usage = [
    'npm test -- [--only <check>]... [--skip <check>]...',
    '',
    ...CHECKS.map(({ name, says, isLong }) => `  ${name.padEnd(14)}${says}${isLong ? ' (only in test:full)' : ''}`),
    '',
    'npm run test:full runs all of them.',
  ];
  let values;
  try {
    const option = { type: 'string', multiple: true, default: [] };
    ({ values } = parseArgs({
      options: { only: option, skip: option, full: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h' } },
    }));
  } catch (error) {
    throw new SetupError(error.message, usage);
  }
  if (values.help) {
    console.log(usage.join('\n'));
    process.exit(0);
  }
  const unknown = [...values.only, ...values.skip].filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new SetupError(`There is no check called ${unknown.join(', ')}.`, usage);
  const isChosen = ({ name, isLong }) => (values.only.length === 0 ? values.full || !isLong : values.only.includes(name));
  return CHECKS.filter((check) => isChosen(check) && !values.skip.includes(check.name));
}

async function runCheck(check, env, tally) {
  say(`${check.name}: ${check.says}`);
  if (check.needsPython) await ensurePython(say);
  if (check.needsRedis) await ensureRedis(say);
  if (check.needsFaketime) await ensureFaketime(say);
  const args = ['run', check.task, '--continue', '--output-logs=full', '--log-order=grouped', `--concurrency=${availableParallelism()}`];
  if (check.filter !== undefined) args.push(`--filter=${check.filter}`);
  tally.begin(check.name, check.isSuite === true);
  const { code } = await run('turbo', args, {
    env,
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    onSpawn: (child) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text) => {
          process.stdout.write(text);
          tally.read(text);
        });
      }
    },
  });
  if (stoppedBy() !== undefined) throw new Stopped(stoppedBy());
  return tally.end(code === 0);
}

passSignalsOn();
try {
  checkMachine();
  const checks = chooseChecks();
  const env = { ...(await toolEnvironment()), NO_COLOR: '1', FORCE_COLOR: '0' };
  await withSetupLock(say, async () => {
    await install(env);
    await linkExampleModels(env);
  });
  const tally = createTally();
  for (const check of checks) {
    const passed = await runCheck(check, env, tally).catch((error) => {
      if (!(error instanceof SetupError)) throw error;
      say(error.message);
      tally.begin(check.name, false);
      return tally.end(false);
    });
    // Nothing can be said of a tree that does not compile.
    if (!passed && check.name === 'build') break;
  }
  console.log(tally.summary());
  process.exitCode = tally.failed === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof SetupError) && !(error instanceof Stopped)) throw error;
  say(error.message);
  process.exitCode = error.exitCode;
}
