/** Runs the warm-up and the measured window of a load and stops it, or fails as soon as the load breaks. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LoadResult } from './load-plan.js';
import type { Recorder } from './recorder.js';

export interface LoadControl {
  readonly recorder: Recorder;
  /** Rejects when the load cannot go on; never resolves. */
  readonly broken: Promise<never>;
  readonly onWindowOpen: () => void;
}

/** A promise that only ever rejects, and the function that rejects it. */
export function breaker(): { readonly broken: Promise<never>; readonly break: (error: Error) => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  return { broken: promise, break: reject };
}

export async function measureWindow(
  plan: { readonly warmupMs: number; readonly measureMs: number },
  control: LoadControl,
): Promise<LoadResult> {
  await Promise.race([delay(plan.warmupMs), control.broken]);
  control.onWindowOpen();
  control.recorder.openWindow();
  await Promise.race([delay(plan.measureMs), control.broken]);
  return control.recorder.closeWindow();
}
