/**
 * Whether a host has grown so much that it should be replaced. Its first measurement in steady service is what it needs;
 * twice that and an allowance on top is a leak, or an arena that one large batch blew up. Pure.
 */
export interface GrowthLimits {
  /** How long after a change of what it holds a host is taken to be in steady service. */
  readonly settleUs: number;
  readonly allowedGrowthBytes: number;
}

export class MemoryGrowth {
  #sinceUs: number;
  #baselineBytes: number | undefined;

  constructor(
    private readonly limits: GrowthLimits,
    nowUs: number,
  ) {
    this.#sinceUs = nowUs;
  }

  /** What it holds has changed: measure anew. */
  reset(nowUs: number): void {
    this.#sinceUs = nowUs;
    this.#baselineBytes = undefined;
  }

  /** @returns whether the host should be replaced */
  observe(rssBytes: number, nowUs: number): boolean {
    if (nowUs - this.#sinceUs < this.limits.settleUs) return false;
    this.#baselineBytes ??= rssBytes;
    return rssBytes > 2 * this.#baselineBytes + this.limits.allowedGrowthBytes;
  }
}
