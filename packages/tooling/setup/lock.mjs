// One set-up at a time in one checkout: a second one waits for the first and then finds its work done.
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from './runtime.mjs';

const FOLDER = join(ROOT, '.paceline');
const LOCK = join(FOLDER, 'set-up.lock');
const RETRY_MS = 250;

/** Runs `work` while no other process in this checkout does. A lock whose owner is gone does not count. */
export async function withSetupLock(say, work) {
  mkdirSync(FOLDER, { recursive: true });
  for (let told = false; !acquire(); told = true) {
    if (!told) say('another set-up is running here; waiting for it');
    await sleep(RETRY_MS);
  }
  const release = () => rmSync(LOCK, { force: true });
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

function acquire() {
  try {
    const file = openSync(LOCK, 'wx');
    writeSync(file, String(process.pid));
    closeSync(file);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    if (!ownerLives()) rmSync(LOCK, { force: true });
    return false;
  }
}

function ownerLives() {
  try {
    const pid = Number(readFileSync(LOCK, 'utf8'));
    // Just made and not yet written: somebody is there.
    if (pid === 0) return true;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
