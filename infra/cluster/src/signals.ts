/**
 * The first signal that asks for the end, and the second. npm, a terminal and another launcher may each deliver the same
 * key press, so repeats within a moment count as one.
 */
const SAME_PRESS_MS = 1000;

/** Catches signals from now on. */
export function signals(): { readonly first: Promise<NodeJS.Signals>; readonly second: Promise<NodeJS.Signals> } {
  const first = Promise.withResolvers<NodeJS.Signals>();
  const second = Promise.withResolvers<NodeJS.Signals>();
  let firstAtMs: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now();
      first.resolve(signal);
    } else if (performance.now() - firstAtMs > SAME_PRESS_MS) second.resolve(signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  return { first: first.promise, second: second.promise };
}
