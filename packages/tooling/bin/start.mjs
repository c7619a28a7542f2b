// `npm start -- <flags>`: sets up what is missing, then runs the server with these flags until it ends.
// Runs on the machine's own Node (20 or newer) without dependencies. A signal to npm, to us or to the whole group
// drains the server once; its exit code is ours.
import { exitCodeOf, passSignalsOn, run, Stopped } from '../setup/processes.mjs';
import { checkMachine, serverNode, serverNodeFlags } from '../setup/runtime.mjs';
import { SetupError } from '../setup/setup-error.mjs';
import { say, SERVER_MAIN, setUp } from '../setup/set-up.mjs';

const FOLLOW_LAUNCHER = new URL('../setup/follow-launcher.mjs', import.meta.url).href;

passSignalsOn();
try {
  checkMachine();
  await setUp();
  const { code, signal } = await run(
    serverNode(),
    [...serverNodeFlags(), '--import', FOLLOW_LAUNCHER, SERVER_MAIN, ...process.argv.slice(2)],
    {
      // npm runs scripts in the root; a relative --model-repository is meant from where the user is.
      cwd: process.env.INIT_CWD ?? process.cwd(),
      env: { ...process.env, PACELINE_LAUNCHER_PID: String(process.pid) },
      // Standard input is a pipe that ends with us.
      stdio: ['pipe', 'inherit', 'inherit'],
      signalGroup: false,
    },
  );
  process.exitCode = exitCodeOf(code, signal);
} catch (error) {
  if (!(error instanceof SetupError) && !(error instanceof Stopped)) throw error;
  say(error.message);
  process.exitCode = error.exitCode;
}
