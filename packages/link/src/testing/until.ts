/** Waiting for what other sockets and processes do: as long as it takes, and never longer than a limit. */

/** Resolves once `condition` holds, looking each turn of the event loop. @throws Error naming `what` after `limitMs` */
export async function until(what: string, condition: () => boolean, limitMs = 20_000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
