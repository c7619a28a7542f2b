/** The in-process limit, seen from the controller. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { BenchModel } from '../models/catalog.js';
import { endProcess, forkPinned } from './pinned.js';

export type LimitCommand =
  { readonly type: 'measure'; readonly rows: number; readonly durationMs: number } | { readonly type: 'answer'; readonly index: number };

export type LimitReply =
  | { readonly type: 'sample'; readonly sample: LimitSample }
  | { readonly type: 'answer'; readonly values: number[] }
  | { readonly type: 'error'; readonly text: string };

export interface LimitSample {
  /** Rows of each batch. */
  readonly rows: number;
  readonly rowsPerS: number;
  readonly runP50Ms: number;
  /** User and system time of the process. */
  readonly cpuSecondsPer1000: number;
}

export const LIMIT_ROWS = [1, 2, 4, 8, 16, 32, 64] as const;

export class Limit {
  private readonly ended: Promise<undefined>;

  private constructor(private readonly child: ChildProcess) {
    this.ended = once(child, 'exit').then(() => undefined);
  }

  static start(core: number, model: BenchModel, file: string): Limit {
    return new Limit(forkPinned(core, 'targets/in-process.main', [model.name, file]));
  }

  async measure(rows: number, durationMs: number): Promise<LimitSample> {
    const reply = await this.ask({ type: 'measure', rows, durationMs });
    if (reply.type !== 'sample') throw new Error(`unexpected reply ${reply.type}`);
    return reply.sample;
  }

  /** The output for row `index` of the input pool. */
  async answer(index: number): Promise<number[]> {
    const reply = await this.ask({ type: 'answer', index });
    if (reply.type !== 'answer') throw new Error(`unexpected reply ${reply.type}`);
    return reply.values;
  }

  stop(): Promise<void> {
    return endProcess(this.child, 1000);
  }

  private async ask(command: LimitCommand): Promise<LimitReply> {
    const replied = once(this.child, 'message') as Promise<[LimitReply]>;
    this.child.send(command);
    const [reply] = (await Promise.race([replied, this.ended])) ?? [];
    if (reply === undefined) throw new Error('the in-process limit ended; see its output above');
    if (reply.type === 'error') throw new Error(`the in-process limit failed: ${reply.text}`);
    return reply;
  }
}
