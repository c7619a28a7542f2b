/** Waits for conditions and events with a deadline; a test that waits for nothing in particular has no business here. */
import { setTimeout as delay } from 'node:timers/promises';

const LOOK_EVERY_MS = 20;

/** Resolves when `holds` does. @throws Error that names what did not happen within `limitMs`. */
export async function until(what: string, limitMs: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await delay(LOOK_EVERY_MS);
  }
}

/** `event`, or an Error that names what did not happen within `limitMs`. */
export async function within<T>(what: string, limitMs: number, event: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms: ${what}`)), limitMs);
  });
  try {
    return await Promise.race([event, late]);
  } finally {
    clearTimeout(timer);
  }
}
