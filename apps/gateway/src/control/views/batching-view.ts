/** What a lane has learned and how it fares, as the HTTP statistics show it beside Triton's fields; gRPC has no place for it. */
import type { BatchingStatistics } from '@paceline/telemetry';

export interface BatchingView {
  /** Ascending by batch size; of the last runs of each. */
  readonly profile: readonly {
    readonly batch_size: number;
    readonly p50_us: number;
    readonly worst_us: number;
    readonly rows_per_second: number;
  }[];
  /** Rows beyond which the rate was not seen to grow; null while that is unknown. */
  readonly peak: number | null;
  /** The four below are there for a model with a latency objective alone. */
  readonly objective_ms?: number;
  readonly attained?: number;
  readonly missed?: number;
  readonly shed?: number;
}

export function batchingView({ profile, objective }: BatchingStatistics): BatchingView {
  const { sizes, peakRows } = profile();
  return {
    profile: sizes.map(({ batchSize, p50Us, worstUs, rowsPerSecond }) => ({
      batch_size: batchSize,
      p50_us: Math.round(p50Us),
      worst_us: Math.round(worstUs),
      rows_per_second: Math.round(rowsPerSecond * 10) / 10,
    })),
    peak: peakRows ?? null,
    ...(objective && {
      objective_ms: objective.objectiveMs,
      attained: objective.attained,
      missed: objective.missed,
      shed: objective.shed,
    }),
  };
}
