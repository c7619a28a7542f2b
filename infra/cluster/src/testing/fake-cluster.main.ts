/** The launcher with programs that only stand for the real ones, as a process that a test can signal and kill. */
import { fileURLToPath } from 'node:url';
import { launch } from '../launch.js';

const fake = fileURLToPath(new URL('fake-program.main.js', import.meta.url));
/** Longer than a start takes. */
const REMIND_EVERY_MS = 2000;
// A program is a path and its first arguments: what kind it stands for.
process.exit(
  await launch(
    process.argv.slice(2),
    process.env,
    {
      mains: { gateway: [fake, '--fake-role=gateway'], scheduler: [fake, '--fake-role=scheduler'], worker: [fake, '--fake-role=worker'] },
      nodeFlags: ['--no-deprecation'],
      exampleModels: '/examples',
    },
    REMIND_EVERY_MS,
  ),
);
