/** Tells gateways once a second what this scheduler has counted since the last time, so that any of them shows the whole cluster's numbers. */
import type { Clock, Timer } from '@paceline/clock';
import type { SchedulerMessage, VersionCounters } from '@paceline/protocol';
import { CountersReport, type StatisticsRegistry, type VersionMemory } from '@paceline/telemetry';

export interface StatisticsReportPorts {
  readonly clock: Clock;
  readonly statistics: StatisticsRegistry;
  /** Of each version that workers announce, over all of them. */
  readonly memory: () => Iterable<VersionMemory>;
  /** Id of this process. */
  readonly self: string;
  readonly broadcast: (message: SchedulerMessage) => void;
  readonly tell: (gateway: string, message: SchedulerMessage) => void;
}

const INTERVAL_US = 1_000_000;

export class StatisticsReport {
  readonly #counters: CountersReport;
  #timer: Timer | undefined;

  constructor(private readonly ports: StatisticsReportPorts) {
    this.#counters = new CountersReport(ports.statistics, ports.memory);
  }

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
    const changed = this.#counters.changed();
    if (changed.length > 0) this.ports.broadcast(this.#message(changed));
  }

  /** Everything, to a gateway that knows nothing yet. */
  onGatewayUp(gateway: string): void {
    const all = this.#counters.all();
    if (all.length > 0) this.ports.tell(gateway, this.#message(all));
  }

  #message(versions: readonly VersionCounters[]): SchedulerMessage {
    return { kind: 'statistics', process: this.ports.self, versions };
  }
}
