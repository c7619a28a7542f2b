/**
 * What lanes said last about their queues, per model version. Invariant: what is older than a second counts as nothing
 * known, not as full: while a scheduler is replaced requests can wait, and refusing them would fail what would succeed.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { LanePressure } from '@paceline/protocol';
import type { LaneLoad } from '../infer/admission-gate.js';

const STALE_US = 1_000_000;

interface MutableLoad extends LaneLoad {
  queued: number;
  expectedWaitUs: number;
  saidUs: number;
}

export class LaneLoads {
  readonly #byKey = new Map<string, MutableLoad>();
  /** Armed while anything is known. */
  #sweep: Timer | undefined;

  constructor(private readonly clock: Clock) {}

  /** The load of that version: one object whose numbers change, so that reading it costs nothing. */
  of(model: string, version: string): LaneLoad {
    return this.#of(model, version);
  }

  onPressure(lanes: readonly LanePressure[]): void {
    const nowUs = this.clock.nowUs();
    for (const { model, version, queued, expectedWaitUs } of lanes) {
      const load = this.#of(model, version);
      load.queued = queued;
      load.expectedWaitUs = expectedWaitUs;
      load.saidUs = nowUs;
    }
    if (lanes.length > 0) this.#arm();
  }

  /** The version takes no requests any more. */
  remove(model: string, version: string): void {
    const load = this.#byKey.get(keyOf(model, version));
    if (load) forget(load);
    this.#byKey.delete(keyOf(model, version));
  }

  close(): void {
    this.#sweep?.cancel();
  }

  #of(model: string, version: string): MutableLoad {
    const key = keyOf(model, version);
    let load = this.#byKey.get(key);
    if (load === undefined) {
      load = { queued: 0, expectedWaitUs: 0, saidUs: -Infinity };
      this.#byKey.set(key, load);
    }
    return load;
  }

  #arm(): void {
    this.#sweep ??= this.clock.setTimer(STALE_US / 4, () => {
      this.#sweep = undefined;
      const staleUs = this.clock.nowUs() - STALE_US;
      let known = false;
      for (const load of this.#byKey.values()) {
        if (load.queued === 0 && load.expectedWaitUs === 0) continue;
        if (load.saidUs <= staleUs) forget(load);
        else known = true;
      }
      if (known) this.#arm();
    });
  }
}

function forget(load: MutableLoad): void {
  load.queued = 0;
  load.expectedWaitUs = 0;
}

const keyOf = (model: string, version: string): string => `${model}\u0000${version}`;
