/** What the server shows of itself, by its command line: which metrics, the access log, and the counters of its worker. */
import type { Clock } from '@paceline/clock';
import type { MetricsOptions as MetricsFlags, ServeOptions } from '@paceline/config';
import { AccessLog } from '@paceline/gateway';
import type { Logger, MetricsOptions, StatisticsRegistry } from '@paceline/telemetry';
import type { WorkerObserver } from '@paceline/worker';
import { StartError } from '@paceline/nest-kit';

export function metricsOptions(flags: MetricsFlags): Pick<MetricsOptions, 'processMetrics' | 'hostMetrics' | 'latencies'> {
  const { host, counterLatencies, summaryQuantiles } = flags;
  return { processMetrics: true, hostMetrics: host, latencies: { counters: counterLatencies, summaryQuantiles } };
}

/** @returns undefined where none is wanted. @throws StartError where its file cannot be opened */
export function openAccessLog({ log }: ServeOptions, clock: Clock, logger: Logger): AccessLog | undefined {
  if (log.access === undefined) return undefined;
  try {
    return new AccessLog(log.access, clock, logger);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`cannot open the access log ${log.access}: ${text}; choose another file with --access-log`, { cause });
  }
}

/** Counts restarts where the other counters of their model are, so that they go with it. */
export function restartCounter(statistics: StatisticsRegistry): WorkerObserver {
  return { onInstanceRestart: ({ model, version, reason }) => statistics.find(model, version)?.recordRestart(reason) };
}
