/**
 * What time it is at a Redis node, from this process's monotonic clock and a rare question: entries of a stream are
 * numbered by that node's clock, so the difference is how long they lay there. Good to half a round trip.
 */
import type { Clock } from '@paceline/clock';
import type { RedisConnection } from './connection.js';
import { RedisScript } from './script.js';

/** Has a key so that a cluster asks the node that numbers the entries of that stream. */
const NOW = new RedisScript(`return redis.call('TIME')`);
/** Of some samples the one with the shortest way is the best. */
const SAMPLES = 3;

export class RedisTime {
  #offsetUs: number | undefined;
  #askedAtUs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  readonly #stop: () => void;

  /** @param key of the stream whose entries are measured */
  constructor(
    private readonly connection: RedisConnection,
    private readonly key: string,
    private readonly clock: Clock,
    private readonly refreshMs = 30_000,
  ) {
    // After a loss it may be another machine that answers.
    this.#stop = connection.onChange((up) => {
      if (up) this.#askedAtUs = Number.NEGATIVE_INFINITY;
    });
  }

  /**
   * How long ago an entry was written, microseconds, never negative; 0 while nothing is known. Asks Redis again, without
   * waiting for it, where the last answer is old.
   * @param entryId `<ms>-<n>` as XADD gives it
   */
  dwellUs(entryId: string): number {
    const nowUs = this.clock.nowUs();
    if (nowUs - this.#askedAtUs > this.refreshMs * 1000) void this.refresh();
    if (this.#offsetUs === undefined) return 0;
    return Math.max(0, nowUs + this.#offsetUs - Number.parseInt(entryId, 10) * 1000);
  }

  /** Asks now. Never rejects: without an answer the last known time holds. */
  refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  close(): void {
    this.#stop();
  }

  async #ask(): Promise<void> {
    this.#askedAtUs = this.clock.nowUs();
    let best: { readonly wayUs: number; readonly offsetUs: number } | undefined;
    for (let sample = 0; sample < SAMPLES; sample++) {
      const sentUs = this.clock.nowUs();
      const reply = await this.connection.run(NOW, [this.key], []).catch(() => undefined);
      const wayUs = this.clock.nowUs() - sentUs;
      if (!Array.isArray(reply)) return;
      const offsetUs = Number(reply[0]) * 1e6 + Number(reply[1]) - (sentUs + wayUs / 2);
      if (!best || wayUs < best.wayUs) best = { wayUs, offsetUs };
    }
    this.#offsetUs = best?.offsetUs;
  }
}
