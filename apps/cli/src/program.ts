/** The commands of `paceline` and their help. */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { keyCommand } from './key.command.js';
import { streamsCommand } from './streams.command.js';

export function createProgram(): Command {
  const program = new Command('paceline')
    .description('Serves machine-learning models over the open inference protocol, batching requests as they arrive.')
    .version(versions(), '-V, --version', 'print the versions of Paceline and of the Node it runs on')
    .showHelpAfterError('Run paceline --help for the commands.')
    .helpCommand(false);
  program
    .command('serve')
    .usage('[flags]')
    .description('serve the models of a model repository; paceline serve --help lists the flags')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => program.error('paceline: serve is started by the paceline script, which stands in apps/cli/bin'));
  program
    .command('check')
    .usage('[directory...] [--json] [flags of serve]')
    .description('print everything that is wrong with model repositories, without starting; paceline check --help says more')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => program.error('paceline: check is started by the paceline script, which stands in apps/cli/bin'));
  program.addCommand(keyCommand());
  program.addCommand(streamsCommand());
  program
    .command('version')
    .description('the same as --version')
    .action(() => console.log(versions()));
  return program;
}

function versions(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  return `paceline ${manifest.version} (node ${process.versions.node})`;
}
