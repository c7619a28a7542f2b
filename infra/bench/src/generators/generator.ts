/** The generator process, seen from the controller. */
import type { ChildProcess } from 'node:child_process';
import { on, once } from 'node:events';
import { endProcess, forkPinned } from '../targets/pinned.js';
import type { GeneratorMessage, LoadPlan, LoadResult } from './load-plan.js';

export class Generator {
  private constructor(private readonly child: ChildProcess) {}

  static async start(core: number): Promise<Generator> {
    const child = forkPinned(core, 'generators/generator.main');
    await once(child, 'message');
    return new Generator(child);
  }

  /**
   * Runs one load to its end.
   * @param onWindowOpen called when the warm-up is over and the measured window begins.
   * @throws Error if the load broke or any answer was not a success.
   */
  async run(plan: LoadPlan, onWindowOpen: () => void): Promise<LoadResult> {
    const messages = on(this.child, 'message', { close: ['exit'] }) as AsyncIterable<[GeneratorMessage]>;
    this.child.send(plan);
    for await (const [message] of messages) {
      if (message.type === 'window-open') onWindowOpen();
      if (message.type === 'error') throw new Error(`load on ${plan.model} failed: ${message.text}`);
      if (message.type === 'result') {
        const { failed, firstFailure, answered } = message.result;
        if (failed > 0)
          throw new Error(`load on ${plan.model}: ${failed} of ${failed + answered} answers failed, the first with ${firstFailure}`);
        return message.result;
      }
    }
    throw new Error('the generator process ended');
  }

  stop(): Promise<void> {
    return endProcess(this.child, 1000);
  }
}
