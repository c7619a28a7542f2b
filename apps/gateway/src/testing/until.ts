/** For tests: waits for a condition, with a deadline. */
import { setTimeout as delay } from 'node:timers/promises';

/** Resolves when `holds` does. @throws Error after `limitMs` milliseconds */
export async function until(holds: () => boolean, limitMs = 5000): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(`not within ${limitMs} ms: ${holds.toString()}`);
    await delay(5);
  }
}
