// Runs one child at a time in a process group of its own, so that Ctrl-C reaches it once and through us: npm and we both
// get the terminal's signal, npm passes its own on, and a server must not be told twice. Owns the launcher's signals.
// A signal stops the child that runs and every step that would follow; the exit code is then 128 + the signal's number.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** A parent that was killed tells nobody: look whether it is still there. */
const PARENT_CHECK_MS = 500;
/** Repeats of a signal within this time are the same key press; a later one is a person who will not wait. */
const SAME_PRESS_MS = 1000;

let child;
let wholeGroup = false;
let stopSignal;
let stoppedAtMs = 0;

/** Thrown instead of starting the next step once a signal has come. */
export class Stopped extends Error {
  constructor(signal) {
    super(`stopped by ${signal}`);
    this.exitCode = exitCodeOf(null, signal);
  }
}

export function exitCodeOf(code, signal) {
  return code ?? 128 + (constants.signals[signal] ?? 0);
}

/** Installs the handlers. Call once, before anything runs. */
export function passSignalsOn() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));
  const parent = process.ppid;
  const check = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(check);
    if (stopSignal === undefined) stop('SIGTERM');
  }, PARENT_CHECK_MS).unref();
}

function stop(signal) {
  if (stopSignal !== undefined && performance.now() - stoppedAtMs < SAME_PRESS_MS) return;
  stopSignal ??= signal;
  stoppedAtMs = performance.now();
  if (child?.pid === undefined) process.exit(exitCodeOf(null, signal));
  try {
    // A server drains on SIGTERM and SIGINT alike; SIGHUP would end it on the spot.
    process.kill(wholeGroup ? -child.pid : child.pid, signal === 'SIGHUP' ? 'SIGTERM' : signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/**
 * Runs a command to its end. Its standard output goes where `stdio` says, by default to our standard error, which
 * keeps standard output for what the server prints.
 * @param {{ env?: NodeJS.ProcessEnv, stdio?: import('node:child_process').StdioOptions, cwd?: string,
 *   onSpawn?: (child: import('node:child_process').ChildProcess) => void, signalGroup?: boolean }} [options]
 *   signalGroup: a signal goes to all processes of the step (default), not to the first alone.
 * @returns {Promise<{ code: number | null, signal: NodeJS.Signals | null }>}
 */
export function run(command, args, { env = process.env, stdio = ['ignore', 2, 2], cwd, onSpawn, signalGroup = true } = {}) {
  if (stopSignal !== undefined) return Promise.reject(new Stopped(stopSignal));
  return new Promise((resolve, reject) => {
    child = spawn(command, args, { env, stdio, cwd, detached: true });
    wholeGroup = signalGroup;
    child.once('error', (error) => {
      child = undefined;
      reject(error);
    });
    child.once('close', (code, signal) => {
      child = undefined;
      resolve({ code, signal });
    });
    onSpawn?.(child);
  });
}

/** The signal that has stopped us, if one has. */
export function stoppedBy() {
  return stopSignal;
}
