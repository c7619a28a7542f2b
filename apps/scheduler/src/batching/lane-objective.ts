/**
 * How a lane shows what it has learned and counts its requests against the latency objective. A new generation of a
 * model with the same objective goes on counting where the old one stopped.
 */
import type { DynamicBatcher } from '@paceline/core';
import type { BatchProfileReading, ModelStatistics, ObjectiveCounts } from '@paceline/telemetry';

export class LaneObjective {
  readonly #counts: ObjectiveCounts | undefined;
  readonly #objectiveUs: number;

  constructor(batcher: DynamicBatcher, statistics: ModelStatistics) {
    this.#objectiveUs = batcher.policy.objectiveUs;
    const objectiveMs = this.#objectiveUs / 1000;
    const before = statistics.batching?.objective;
    if (objectiveMs > 0) this.#counts = before?.objectiveMs === objectiveMs ? before : { objectiveMs, attained: 0, missed: 0, shed: 0 };
    statistics.batching = { profile: () => profileOf(batcher), objective: this.#counts };
  }

  /** Microseconds from arrival to reply; 0 = none. */
  get us(): number {
    return this.#objectiveUs;
  }

  answered(latencyUs: number): void {
    if (!this.#counts) return;
    if (latencyUs <= this.#objectiveUs) this.#counts.attained += 1;
    else this.#counts.missed += 1;
  }

  timedOut(): void {
    if (this.#counts) this.#counts.missed += 1;
  }

  shed(): void {
    if (this.#counts) this.#counts.shed += 1;
  }
}

/** Of the shape that ran most. */
function profileOf(batcher: DynamicBatcher): BatchProfileReading {
  const [first, ...others] = [...batcher.profiles].map(([, profile]) => profile);
  if (!first) return { sizes: [], peakRows: undefined };
  const profile = others.reduce((most, other) => (other.runs > most.runs ? other : most), first);
  const sizes = profile.readings().map(({ rows, medianUs, worstUs, rowsPerSecond }) => ({
    batchSize: Math.round(rows),
    p50Us: medianUs,
    worstUs,
    rowsPerSecond,
  }));
  return { sizes, peakRows: profile.peakRows };
}
