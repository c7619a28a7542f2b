export { createLogger, SILENT, type Logger, type LoggerOptions } from './logger.js';
export { createMetrics, type Metrics, type MetricsOptions } from './metrics/metrics.js';
export type { TagsOf } from './metrics/model-labels.js';
export {
  FAILURE_REASONS,
  ModelStatistics,
  RELEASE_REASONS,
  StatisticsRegistry,
  type BatchSizeStatistics,
  type Duration,
  type ExecutionRecord,
  type FailureReason,
  type ReleaseReason,
  type StageDurations,
  type StatisticsObserver,
} from './statistics.js';
