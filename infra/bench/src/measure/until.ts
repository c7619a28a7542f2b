/** Waiting for what can only be found out by looking again. */
import { setTimeout as delay } from 'node:timers/promises';

const GIVE_UP_MS = 20_000;
const LOOK_EVERY_MS = 10;

/** @throws Error that names `what` if it does not hold within the limit. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, limitMs: number = GIVE_UP_MS): Promise<void> {
  for (const endMs = performance.now() + limitMs; !(await holds());) {
    if (performance.now() > endMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await delay(LOOK_EVERY_MS);
  }
}
