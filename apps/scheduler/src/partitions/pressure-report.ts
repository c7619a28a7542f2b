/**
 * Tells gateways what lanes hold, so that a full one is refused at the door. Invariant: a lane that is not idle is named
 * at least each half second, one that has changed after a tenth of a second, and one that has become idle once.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { LanePressure, SchedulerMessage } from '@paceline/protocol';

export interface PressureReportPorts {
  readonly clock: Clock;
  readonly pressures: () => Iterable<LanePressure>;
  readonly broadcast: (message: SchedulerMessage) => void;
}

const LOOK_US = 100_000;
/** Looks until what has not changed is told again. */
const REPEAT = 5;

export class PressureReport {
  /** What was told of lanes that were not idle, by version, and how many looks ago. */
  readonly #told = new Map<string, { queued: number; age: number }>();
  #timer: Timer | undefined;

  constructor(private readonly ports: PressureReportPorts) {}

  start(): void {
    this.#timer = this.ports.clock.setTimer(LOOK_US, () => {
      this.start();
      this.#look();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const lanes: LanePressure[] = [];
    const seen = new Set<string>();
    for (const pressure of this.ports.pressures()) {
      const { model, version, queued } = pressure;
      const key = `${model}/${version}`;
      // An older lane of the version follows the one that takes requests.
      if (seen.has(key)) continue;
      const told = this.#told.get(key);
      if (queued === 0 && !told) continue;
      seen.add(key);
      if (told && told.queued === queued && ++told.age < REPEAT) continue;
      lanes.push(pressure);
      if (queued === 0) this.#told.delete(key);
      else this.#told.set(key, { queued, age: 0 });
    }
    for (const key of this.#told.keys()) if (!seen.has(key)) this.#told.delete(key);
    if (lanes.length > 0) this.ports.broadcast({ kind: 'pressure', lanes });
  }
}
