/** Tells gateways once a second what this scheduler has counted since the last time, so that any of them shows the whole cluster's numbers. */
import type { Clock, Timer } from '@paceline/clock';
import type { CountedTime, SchedulerMessage, VersionCounters } from '@paceline/protocol';
import type { Duration, ModelStatistics, StatisticsRegistry } from '@paceline/telemetry';

export interface StatisticsReportPorts {
  readonly clock: Clock;
  readonly statistics: StatisticsRegistry;
  /** Id of this process. */
  readonly self: string;
  readonly broadcast: (message: SchedulerMessage) => void;
  readonly tell: (gateway: string, message: SchedulerMessage) => void;
}

const INTERVAL_US = 1_000_000;
const NOTHING: CountedTime = { count: 0, ns: 0 };

export class StatisticsReport {
  /** Executions that have been told of; a version without news is left out. */
  readonly #told = new Map<ModelStatistics, number>();
  #timer: Timer | undefined;

  constructor(private readonly ports: StatisticsReportPorts) {}

  start(): void {
    this.#timer = this.ports.clock.setTimer(INTERVAL_US, () => {
      this.start();
      this.report();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** What has changed, to all gateways. */
  report(): void {
    const changed: ModelStatistics[] = [];
    for (const statistics of this.ports.statistics.all()) {
      if (statistics.executionCount === (this.#told.get(statistics) ?? 0)) continue;
      this.#told.set(statistics, statistics.executionCount);
      changed.push(statistics);
    }
    if (changed.length > 0) this.ports.broadcast(this.#message(changed));
  }

  /** Everything, to a gateway that knows nothing yet. */
  onGatewayUp(gateway: string): void {
    const all = [...this.ports.statistics.all()].filter(({ executionCount }) => executionCount > 0);
    if (all.length > 0) this.ports.tell(gateway, this.#message(all));
  }

  #message(versions: readonly ModelStatistics[]): SchedulerMessage {
    return { kind: 'statistics', process: this.ports.self, versions: versions.map(countersOf) };
  }
}

function countersOf(statistics: ModelStatistics): VersionCounters {
  const { model, version, inferenceCount, executionCount, lastInferenceMs } = statistics;
  return {
    model,
    version,
    success: NOTHING,
    fail: NOTHING,
    queue: timeOf(statistics.queue),
    computeInput: timeOf(statistics.computeInput),
    computeInfer: timeOf(statistics.computeInfer),
    computeOutput: timeOf(statistics.computeOutput),
    inferenceCount,
    executionCount,
    lastInferenceMs,
    batchSizes: [...statistics.batchSizes.values()].map((size) => ({
      batchSize: size.batchSize,
      computeInput: timeOf(size.computeInput),
      computeInfer: timeOf(size.computeInfer),
      computeOutput: timeOf(size.computeOutput),
    })),
  };
}

function timeOf({ count, ns }: Duration): CountedTime {
  return { count, ns };
}
