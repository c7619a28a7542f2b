/**
 * When and how a process ends: the first SIGTERM or SIGINT drains it, a second one or the time limit cuts it short.
 * npm, a terminal and a launcher may each deliver the same key press, so repeats within a moment count as one.
 */
const SAME_PRESS_MS = 1000;

/** Resolves at the first signal; `onSecond` is called at a later one. */
export function waitForSignal(onSecond: (signal: NodeJS.Signals) => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      const now = performance.now();
      if (firstAt === undefined) {
        firstAt = now;
        resolve(signal);
      } else if (now - firstAt > SAME_PRESS_MS) onSecond(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
