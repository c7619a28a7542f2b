// Sets up what is missing, then runs one of our programs with the flags of the command line until it ends. Runs on the
// machine's own Node (20 or newer) without dependencies. A signal to npm, to us or to the whole group reaches the
// program once; its exit code is ours.
import { exitCodeOf, passSignalsOn, run, Stopped } from './processes.mjs';
import { checkMachine, serverNode, serverNodeFlags } from './runtime.mjs';
import { SetupError } from './setup-error.mjs';
import { say, setUp } from './set-up.mjs';

const FOLLOW_LAUNCHER = new URL('./follow-launcher.mjs', import.meta.url).href;

/** @param {string} main path of the program */
export async function launch(main) {
  passSignalsOn();
  try {
    checkMachine();
    await setUp();
    const { code, signal } = await run(serverNode(), [...serverNodeFlags(), '--import', FOLLOW_LAUNCHER, main, ...process.argv.slice(2)], {
      // npm runs scripts in the root; a relative --model-repository is meant from where the user is.
      cwd: process.env.INIT_CWD ?? process.cwd(),
      env: { ...process.env, PACELINE_LAUNCHER_PID: String(process.pid) },
      // Standard input is a pipe that ends with us.
      stdio: ['pipe', 'inherit', 'inherit'],
      signalGroup: false,
    });
    process.exitCode = exitCodeOf(code, signal);
  } catch (error) {
    if (!(error instanceof SetupError) && !(error instanceof Stopped)) throw error;
    say(error.message);
    process.exitCode = error.exitCode;
  }
}
