/**
 * One generation of a model version that the cluster is to serve, as its placement owner keeps it: what it is, where it
 * failed, and who waits for it. Invariant: a pending load is settled once.
 */
import { versionKey, wantedReplicas, needsOf, type PlacementNeeds, type PlacementTarget, type Unplaced } from '@paceline/core';
import { ServingError } from '@paceline/protocol';
import type { LoadReport, LoadSpec } from '@paceline/worker-rpc';

const FIRST_BACK_OFF_US = 1_000_000;
const LONGEST_BACK_OFF_US = 60_000_000;

/** Somebody waits for the first replicas. */
export interface PendingLoad {
  /** Until when it waits for a worker to come, microseconds of the clock; Infinity = without end. */
  readonly deadlineUs: number;
  /** Until when it waits for one that fits, where there are others. */
  readonly fitDeadlineUs: number;
  /** It was there already: one replica is enough, others follow. */
  readonly adopted: boolean;
  /** Workers that were lost while they loaded it. */
  lost: number;
  /** What was said last of how far it is. */
  told: string;
  resolve(): void;
  reject(error: ServingError): void;
}

interface Failure {
  readonly times: number;
  readonly untilUs: number;
}

export class LoadTarget {
  active = false;
  pending: PendingLoad | undefined;
  /** The last failure at a worker. */
  lastError: ServingError | undefined;
  /** By worker. */
  readonly reports = new Map<string, LoadReport>();
  readonly #failures = new Map<string, Failure>();

  readonly needs: PlacementNeeds;

  /** @param bytesPerInstance an estimate; 0 = not known */
  constructor(
    /** Gets its partition before anybody is asked to load it. */
    public spec: LoadSpec,
    readonly fingerprint: string,
    bytesPerInstance: number,
  ) {
    this.needs = needsOf(spec.config, bytesPerInstance);
  }

  /** As the planner sees it. */
  toPlan(nowUs: number): PlacementTarget {
    const { model, version, generation, config } = this.spec;
    const excluded = new Set([...this.#failures].filter(([, { untilUs }]) => untilUs > nowUs).map(([worker]) => worker));
    return { model, version, generation, needs: this.needs, replicas: wantedReplicas(config), active: this.active, excluded };
  }

  get key(): string {
    return versionKey(this.spec);
  }

  /** It is not asked again for a while, and each time for longer. */
  exclude(worker: string, error: ServingError, nowUs: number): void {
    const times = (this.#failures.get(worker)?.times ?? 0) + 1;
    this.#failures.set(worker, { times, untilUs: nowUs + Math.min(LONGEST_BACK_OFF_US, FIRST_BACK_OFF_US * 2 ** (times - 1)) });
    this.lastError = error;
  }

  /** When the next of those that failed may be asked again; undefined = none failed. */
  nextRetryUs(nowUs: number): number | undefined {
    const later = [...this.#failures.values()].map(({ untilUs }) => untilUs).filter((untilUs) => untilUs > nowUs);
    return later.length === 0 ? undefined : Math.min(...later);
  }

  settle(error: ServingError | undefined): void {
    const { pending } = this;
    this.pending = undefined;
    if (error === undefined) pending?.resolve();
    else pending?.reject(error);
  }
}

/** The reasons with which a load fails for want of a worker, rather than for a fault of the model. */
const WANT = new Set<string>(['no_worker', 'no_device', 'no_room', 'worker_lost']);

/** Whether the load may come up as soon as another worker joins. */
export const isWantOfWorker = ({ reason, code }: ServingError): boolean => WANT.has(reason) || isTroubleOfWorker(code);

/** Whether that worker could not, while another one may: it is no fault of the model. */
export function isTroubleOfWorker(code: ServingError['code']): boolean {
  return code === 'UNAVAILABLE' || code === 'RESOURCE_EXHAUSTED' || code === 'DEADLINE_EXCEEDED' || code === 'CANCELLED';
}

const WHY: Readonly<Record<Unplaced['why'], string>> = {
  no_worker: 'no worker is connected that takes models',
  no_device: 'no worker has the devices that its instance groups name',
  no_room: 'no worker has enough memory free',
  excluded: 'every worker that could has failed to load it',
};

export function describeWant(why: Unplaced['why'], { needs }: Pick<PlacementTarget, 'needs'>): string {
  if (why === 'no_device') {
    const hint = needs.kind === 'gpu' ? '; run one from the image for GPUs on a machine with them, or write kind: KIND_CPU' : '';
    return `${WHY.no_device} (${needs.devices.length > 0 ? needs.devices.join(', ') : needs.kind})${hint}`;
  }
  return why === 'no_room' ? `${WHY.no_room} (it needs about ${Math.ceil(needs.memoryBytes / 1e6)} MB)` : WHY[why];
}

/** The failure of a load that could not be placed. */
export function wantError(why: Unplaced['why'], target: Pick<PlacementTarget, 'needs'>): ServingError {
  const code = why === 'no_room' ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE';
  return new ServingError(code, describeWant(why, target), { reason: why });
}
