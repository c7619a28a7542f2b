/** What a lane has learned of its model's batches and how it fares against its latency objective; the lane writes, others read. */

/** What the last runs of one batch size took, microseconds. */
export interface BatchSizeReading {
  readonly batchSize: number;
  readonly p50Us: number;
  readonly worstUs: number;
  readonly rowsPerSecond: number;
}

export interface BatchProfileReading {
  /** Ascending by batch size; sizes that never ran are left out. */
  readonly sizes: readonly BatchSizeReading[];
  /** Rows beyond which the rate was not seen to grow; undefined while that is unknown. */
  readonly peakRows: number | undefined;
}

/** Requests of a model with a latency objective, by how they ended. Those that failed or whose client left are in none. */
export interface ObjectiveCounts {
  readonly objectiveMs: number;
  /** Answered in time. */
  attained: number;
  /** Answered, or timed out in the queue, later. */
  missed: number;
  /** Refused because they could not be answered in time. */
  shed: number;
}

export interface BatchingStatistics {
  /** Read when somebody asks; costs a lane nothing before. */
  readonly profile: () => BatchProfileReading;
  readonly objective: ObjectiveCounts | undefined;
}
