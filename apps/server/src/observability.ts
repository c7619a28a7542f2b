/** What the server shows of its worker. */
import type { StatisticsRegistry } from '@paceline/telemetry';
import type { WorkerObserver } from '@paceline/worker';

/** Counts restarts where the other counters of their model are, so that they go with it. */
export function restartCounter(statistics: StatisticsRegistry): WorkerObserver {
  return { onInstanceRestart: ({ model, version, reason }) => statistics.find(model, version)?.recordRestart(reason) };
}
