/** The commands of `paceline` and their help. */
import { readFileSync } from 'node:fs';
import { parseServeOptions } from '@paceline/config';
import { Command } from 'commander';
import { keyCommand } from './key.command.js';

export function createProgram(): Command {
  const program = new Command('paceline')
    .description('Serves machine-learning models over the open inference protocol, batching requests as they arrive.')
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
    .usage('[flags]')
    .description('read the flags of serve and report what is wrong with them, without starting')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action((_options: unknown, command: Command) => {
      const result = parseServeOptions(command.args, process.env);
      if (result.kind === 'help') return void console.log(result.text);
      if (result.kind === 'errors') {
        console.error(result.errors.join('\n'));
        process.exitCode = 1;
        return;
      }
      for (const warning of result.warnings) console.error(`warning: ${warning}`);
      console.log('The flags are right.');
    });
  program.addCommand(keyCommand());
  program
    .command('version')
    .description('print the versions of Paceline and of the Node it runs on')
    .action(() => console.log(`paceline ${version()} (node ${process.versions.node})`));
  return program;
}

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  return manifest.version;
}
