/**
 * Gives back the memory of models that are gone. The collector waits for 128 MB before it looks by itself (node.flags:
 * more often would cost large tensors a fifth of their processor time), so what an unload leaves behind is collected here, in a
 * moment without requests.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { ModelManager } from '@paceline/scheduler';

const QUIET_US = 500_000;

/** @param unanswered requests under way now */
export function collectAfterUnloads(models: ModelManager, unanswered: () => number, clock: Clock): void {
  const collect = globalThis.gc;
  if (collect === undefined) return;
  let timer: Timer | undefined;
  const arm = (): void => {
    timer ??= clock.setTimer(QUIET_US, () => {
      timer = undefined;
      if (unanswered() > 0) arm();
      else void collect({ type: 'major', execution: 'async' });
    });
  };
  models.subscribe(({ state, reason }) => {
    if (state === 'UNAVAILABLE' && reason === 'unloaded') arm();
  });
}
