/**
 * Whether a host has grown so much that it should be replaced. Its first measurement in steady service is what it needs;
 * twice that and a quarter of a gigabyte on top is a leak, or an arena that one large batch blew up. Pure.
 */
const SETTLE_US = 30_000_000;
const ALLOWED_GROWTH_BYTES = 256 * 1024 * 1024;

export class MemoryGrowth {
  #sinceUs: number;
  #baselineBytes: number | undefined;

  constructor(nowUs: number) {
    this.#sinceUs = nowUs;
  }

  /** What it holds has changed: measure anew. */
  reset(nowUs: number): void {
    this.#sinceUs = nowUs;
    this.#baselineBytes = undefined;
  }

  /** @returns whether the host should be replaced */
  observe(rssBytes: number, nowUs: number): boolean {
    if (nowUs - this.#sinceUs < SETTLE_US) return false;
    this.#baselineBytes ??= rssBytes;
    return rssBytes > 2 * this.#baselineBytes + ALLOWED_GROWTH_BYTES;
  }
}
