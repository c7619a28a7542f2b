/** Looks at the repositories again and again, and hands on what has changed. A look that fails changes nothing. */
import type { Clock, Timer } from '@paceline/clock';
import { toServingError, type ServingError } from '@paceline/protocol';
import type { ModelSource } from './model-source.js';
import { RepositoryChanges, type PollAction } from './repository-changes.js';

/** Between the two looks of a start, when something was written just before. */
const FIRST_INTERVAL_US = 1_000_000;
const JUST_NOW_MS = 3000;

export interface RepositoryPollOptions {
  readonly intervalUs: number;
  /** Must not throw; what it starts is not waited for, so that one slow load holds up no other. */
  readonly onActions: (actions: readonly PollAction[]) => void;
  /** A repository could not be read; all that is loaded stays. */
  readonly onFailure: (error: ServingError) => void;
}

export class RepositoryPoll {
  readonly #changes = new RepositoryChanges();
  #timer: Timer | undefined;
  #stopped = false;

  constructor(
    private readonly source: ModelSource,
    private readonly clock: Clock,
    private readonly options: RepositoryPollOptions,
  ) {}

  /**
   * The models to load at start. Where files have changed just now it looks twice, a second apart: what is being copied
   * into a repository while the server starts is loaded once it is whole.
   * @throws ServingError NOT_FOUND when a repository cannot be read
   */
  async first(): Promise<PollAction[]> {
    const seen = await this.source.observe();
    this.#changes.next(seen);
    const newestMs = Math.max(0, ...[...seen.values()].map(({ changedMs }) => changedMs));
    if (this.clock.wallMs() - newestMs > JUST_NOW_MS) return this.#changes.next(seen);
    await new Promise<void>((resolve) => (this.#timer = this.clock.setTimer(FIRST_INTERVAL_US, resolve)));
    return this.#changes.next(await this.source.observe());
  }

  /** Begins to poll. */
  start(): void {
    if (this.#stopped) return;
    this.#timer = this.clock.setTimer(this.options.intervalUs, () => void this.#poll());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #poll(): Promise<void> {
    try {
      const actions = this.#changes.next(await this.source.observe());
      if (!this.#stopped && actions.length > 0) this.options.onActions(actions);
    } catch (error) {
      this.options.onFailure(toServingError(error));
    }
    this.start();
  }
}
