/** From the flags to what a process shows of itself on its metrics port. */
import type { MetricsOptions as MetricsFlags } from '@paceline/config';
import type { MetricsOptions } from '@paceline/telemetry';

export function metricsOptions(flags: MetricsFlags): Pick<MetricsOptions, 'processMetrics' | 'hostMetrics' | 'latencies'> {
  const { host, counterLatencies, summaryQuantiles } = flags;
  return { processMetrics: true, hostMetrics: host, latencies: { counters: counterLatencies, summaryQuantiles } };
}
