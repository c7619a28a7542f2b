export { createLog, createLogger, SILENT, type Log, type Logger, type LoggerOptions } from './log/logger.js';
export { LOG_LEVELS, LOG_MODULES, LogSettings, type LogLevel, type LogModule, type LogSwitches } from './log/log-settings.js';
export type { BatchingStatistics, BatchProfileReading, BatchSizeReading, ObjectiveCounts } from './batching-statistics.js';
export { createMetrics, type LatencyMetrics, type MetricFamily, type Metrics, type MetricsOptions } from './metrics/metrics.js';
export type { ServerReadings } from './metrics/server-metrics.js';
export type { TagsOf } from './metrics/model-labels.js';
export {
  FAILURE_REASONS,
  ModelStatistics,
  RELEASE_REASONS,
  StatisticsRegistry,
  type BatchSizeStatistics,
  type CountsByReason,
  type Duration,
  type ExecutionRecord,
  type FailureReason,
  type InstanceMemoryReading,
  type ReleaseReason,
  type StageDurations,
  type StatisticsObserver,
  type StatisticsReader,
} from './statistics.js';
export { openOtlpTracing, type OtlpTracingOptions } from './tracing/otlp-tracing.js';
export {
  SPAN_NAMES,
  type Span,
  type SpanAttributes,
  type SpanEnd,
  type SpanName,
  type SpanStart,
  type Tracing,
} from './tracing/tracing.js';
export { ClusterCounters, CountersReport, type VersionMemory } from './version-counters.js';
