/** Entry of `paceline check`. */
import { runCheck } from './run-check.js';

const { stdout, stderr } = process;
process.exitCode = await runCheck(process.argv.slice(2), process.env, {
  out: (text) => void stdout.write(text),
  err: (text) => void stderr.write(text),
  colour: stdout.isTTY && stdout.hasColors() && !process.env['NO_COLOR'],
  width: stdout.columns || 100,
});
