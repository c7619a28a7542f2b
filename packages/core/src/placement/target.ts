/**
 * The words of the placement planner: what the cluster looks like, what it should serve, and what is to be done about
 * the difference. A load is one generation of one model version on one worker.
 */
import type { Device } from '@paceline/protocol';

/** What a model version needs of the worker that serves it. */
export interface PlacementNeeds {
  readonly kind: Device['kind'];
  /** Ids of the devices it names, `gpu:0`; empty = any of its kind. */
  readonly devices: readonly string[];
  /** Memory of all its instances, an estimate; 0 = not known. */
  readonly memoryBytes: number;
}

/** One generation of a model version that is to be served. */
export interface PlacementTarget {
  readonly model: string;
  /** Decimal. */
  readonly version: string;
  readonly generation: number;
  readonly needs: PlacementNeeds;
  /** How many workers serve it at most, from 1; Infinity = every one that has room. */
  readonly replicas: number;
  /** Requests may go to it: what is loaded of it is to be activated. Before that a load is nobody's but the owner's. */
  readonly active: boolean;
  /** Workers that failed to load it a short while ago. */
  readonly excluded: ReadonlySet<string>;
}

export interface PlacedLoad {
  readonly model: string;
  readonly version: string;
  readonly generation: number;
  /** `loading`: asked for and not answered yet. */
  readonly state: 'loading' | 'loaded' | 'active' | 'retiring';
  readonly kind: Device['kind'];
  /** What it takes, or will take; 0 = not known. */
  readonly memoryBytes: number;
}

export interface PlacementWorker {
  readonly id: string;
  readonly devices: readonly Device[];
  /** It takes no further load and goes as soon as it can be spared. */
  readonly draining: boolean;
  readonly loads: readonly PlacedLoad[];
}

export interface PlacementSnapshot {
  readonly workers: readonly PlacementWorker[];
  readonly targets: readonly PlacementTarget[];
}

export interface PlacementAction {
  readonly kind: 'load' | 'activate' | 'retire';
  readonly worker: string;
  readonly model: string;
  readonly version: string;
  readonly generation: number;
}

/**
 * Why nobody serves a target and no action would change that.
 * - `no_worker`: there is none that takes loads
 * - `no_device`: none has the devices
 * - `no_room`: none has the memory, even if every spare replica of other models went
 * - `excluded`: those that could have failed a short while ago
 */
export interface Unplaced {
  readonly model: string;
  readonly version: string;
  readonly generation: number;
  readonly why: 'no_worker' | 'no_device' | 'no_room' | 'excluded';
}

export interface PlacementPlan {
  readonly actions: readonly PlacementAction[];
  readonly unplaced: readonly Unplaced[];
}

type Version = Pick<PlacedLoad, 'model' | 'version'>;

/** Identity of a model version; no two share it, since a version is decimal. */
export const versionKey = ({ model, version }: Version): string => `${version}/${model}`;

/** Identity of a load on its worker. */
export const loadKey = (load: Version & { readonly generation: number }): string => `${load.generation}/${versionKey(load)}`;
