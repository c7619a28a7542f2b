/**
 * Gives back the memory of models that are gone. The collector waits for 128 MB before it looks by itself (node.flags:
 * more often would cost large tensors a fifth of their processor time), so what an unload leaves behind is collected here, once
 * nobody has asked for anything for a while: it stops the process for some tens of milliseconds.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { ModelManager } from '@paceline/scheduler';

const QUIET_US = 1_000_000;

/** @param accepted requests taken in so far */
export function collectAfterUnloads(models: ModelManager, accepted: () => number, clock: Clock): void {
  const collect = globalThis.gc;
  if (collect === undefined) return;
  let timer: Timer | undefined;
  const arm = (): void => {
    const before = accepted();
    timer ??= clock.setTimer(QUIET_US, () => {
      timer = undefined;
      if (accepted() > before) arm();
      else void collect({ type: 'major', execution: 'async' });
    });
  };
  models.subscribe(({ state, reason }) => {
    if (state === 'UNAVAILABLE' && reason === 'unloaded') arm();
  });
}
