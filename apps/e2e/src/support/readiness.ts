/** Watches what a server says of its readiness while things happen to it. */
import { setTimeout as delay } from 'node:timers/promises';

/** One look: whether the server, and each model by name, said that it was ready. */
export interface Look {
  readonly atMs: number;
  readonly server: boolean;
  readonly models: Readonly<Record<string, boolean>>;
}

const LOOK_EVERY_MS = 20;

export class ReadinessWatch {
  readonly looks: Look[] = [];
  /** Of the clock that `atMs` counts by, which began with this process and not with the watch. */
  readonly startedMs = performance.now();
  #ended = false;
  readonly #done: Promise<void>;

  constructor(
    private readonly http: string,
    private readonly models: readonly string[],
  ) {
    this.#done = this.#watch();
    // A test that failed on its own has killed the server meanwhile: its reason shall be the one that is read.
    this.#done.catch(() => undefined);
  }

  /** Looks since `sinceMs` in which the server and its models contradicted each other. */
  contradictions(): Look[] {
    return this.looks.filter((look) => look.server !== Object.values(look.models).every(Boolean));
  }

  /** Resolves with the first look at or after `sinceMs` for which it holds. @throws Error when none came in time */
  async first(what: string, sinceMs: number, limitMs: number, holds: (look: Look) => boolean): Promise<Look> {
    for (;;) {
      const found = this.looks.find((look) => look.atMs >= sinceMs && holds(look));
      if (found && found.atMs - sinceMs <= limitMs) return found;
      if (performance.now() - sinceMs > limitMs + 1000) throw new Error(`not within ${limitMs} ms: ${what}`);
      await delay(LOOK_EVERY_MS);
    }
  }

  /** @throws Error when a look got no answer */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#done;
  }

  async #watch(): Promise<void> {
    const ready = async (path: string) => (await fetch(`http://${this.http}/v2/${path}/ready`)).ok;
    while (!this.#ended) {
      const atMs = performance.now();
      // The models first and last: a change between the looks must not pass for a contradiction.
      const before = await Promise.all(this.models.map((model) => ready(`models/${model}`)));
      const server = await ready('health');
      const after = await Promise.all(this.models.map((model) => ready(`models/${model}`)));
      if (before.every((was, i) => was === after[i])) {
        this.looks.push({ atMs, server, models: Object.fromEntries(this.models.map((model, i) => [model, after[i]!])) });
      }
      await delay(LOOK_EVERY_MS);
    }
  }
}
