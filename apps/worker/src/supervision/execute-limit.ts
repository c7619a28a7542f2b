/**
 * How long one batch may run before its host counts as hung. The configured limit holds until enough runs have been
 * seen; then it is a multiple of the worst of them, scaled up for a batch that brings more bytes than any before, never
 * below a floor and never above the configured limit. The first run has a limit of its own: it may compile and page in.
 * A model whose time depends on values can outlive a lesson: each run that does multiplies the limit, so that a long run
 * gets through when it is tried again, and a hung one does not hold up others for the configured limit each time.
 */
const LEARNED_AFTER_RUNS = 50;
const TIMES_WORST = 20;
const TIMES_OUTLIVED = 4;

export interface ExecuteLimits {
  readonly firstRunLimitUs: number;
  readonly executeLimitUs: number;
  /** A learned limit never goes below this. */
  readonly learnedFloorUs: number;
}

export class ExecuteLimit {
  #runs = 0;
  #worstUs = 0;
  #mostBytes = 1;

  constructor(private readonly limits: ExecuteLimits) {}

  record(inferUs: number, inputBytes: number): void {
    this.#runs += 1;
    if (inferUs > this.#worstUs) this.#worstUs = inferUs;
    if (inputBytes > this.#mostBytes) this.#mostBytes = inputBytes;
  }

  /** A run was ended at `limitUs`. If that limit was learned, it may have been learned from the wrong runs. */
  outlived(limitUs: number): void {
    if (limitUs >= this.limits.executeLimitUs) return;
    this.#worstUs = Math.max(this.#worstUs, (TIMES_OUTLIVED * limitUs) / TIMES_WORST);
  }

  /** Longest run of the model so far, microseconds. */
  get worstUs(): number {
    return this.#worstUs;
  }

  /** @param inputBytes tensor bytes of the batch that is about to run */
  limitUs(inputBytes: number): number {
    const { firstRunLimitUs, executeLimitUs, learnedFloorUs } = this.limits;
    if (this.#runs === 0) return firstRunLimitUs;
    if (this.#runs < LEARNED_AFTER_RUNS) return executeLimitUs;
    const learned = TIMES_WORST * this.#worstUs * Math.max(1, inputBytes / this.#mostBytes);
    return Math.min(executeLimitUs, Math.max(learnedFloorUs, learned));
  }
}
