/**
 * Decides what is loaded where: a snapshot of the cluster goes in, the actions that bring it nearer to its targets come
 * out. Deterministic, and without memory: the same snapshot gives the same plan, and a snapshot in which the actions
 * have begun gives none of them again. Rules, in this order: every target has one replica before any has a second;
 * where only memory is missing, a spare replica of another target makes way; a replica goes only while another one is
 * active, or when nothing wants its version.
 */
import { fnv1a } from './hash.js';
import { hasDevices, Room } from './room.js';
import {
  loadKey,
  versionKey,
  type PlacedLoad,
  type PlacementAction,
  type PlacementPlan,
  type PlacementSnapshot,
  type PlacementTarget,
  type PlacementWorker,
  type Unplaced,
} from './target.js';

/** What the plan knows of one target while it is made. */
interface Progress {
  readonly target: PlacementTarget;
  readonly bytes: number;
  /** Workers that have it, or will, and stay. */
  readonly holders: Set<string>;
  /** Those of `holders` that can serve it now; `loaded` counts before the target is active. */
  readonly up: Set<string>;
  /** Draining workers that have it still. */
  readonly leaving: Set<string>;
}

export function planPlacement(snapshot: PlacementSnapshot): PlacementPlan {
  return new Planner(snapshot).plan();
}

class Planner {
  readonly #room: Room;
  readonly #workers: readonly PlacementWorker[];
  readonly #targets: readonly Progress[];
  readonly #byLoad = new Map<string, Progress>();
  readonly #actions: PlacementAction[] = [];
  readonly #unplaced: Unplaced[] = [];
  readonly #retired = new Set<string>();

  constructor(snapshot: PlacementSnapshot) {
    this.#workers = [...snapshot.workers].sort((a, b) => (a.id < b.id ? -1 : 1));
    this.#room = new Room(this.#workers);
    this.#targets = snapshot.targets
      .map((target) => this.#progressOf(target))
      // What is hard to fit comes first.
      .sort((a, b) => b.bytes - a.bytes || (loadKey(a.target) < loadKey(b.target) ? -1 : 1));
    for (const progress of this.#targets) this.#byLoad.set(loadKey(progress.target), progress);
  }

  plan(): PlacementPlan {
    this.#activate();
    for (const progress of this.#targets) if (progress.holders.size === 0) this.#placeFirst(progress);
    for (const progress of this.#targets) this.#placeMore(progress);
    for (const progress of this.#targets) this.#thin(progress);
    this.#sweep();
    return { actions: this.#actions, unplaced: this.#unplaced };
  }

  #progressOf(target: PlacementTarget): Progress {
    const holders = new Set<string>();
    const up = new Set<string>();
    const leaving = new Set<string>();
    for (const worker of this.#workers) {
      const load = findLoad(worker, target);
      if (load === undefined || load.state === 'retiring') continue;
      if (worker.draining) {
        leaving.add(worker.id);
        continue;
      }
      holders.add(worker.id);
      if (load.state === 'active' || (!target.active && load.state === 'loaded')) up.add(worker.id);
    }
    return { target, bytes: this.#room.sizeOf(target), holders, up, leaving };
  }

  #activate(): void {
    for (const { target, holders } of this.#targets) {
      if (!target.active) continue;
      for (const worker of this.#workers) {
        if (holders.has(worker.id) && findLoad(worker, target)?.state === 'loaded') this.#act('activate', worker.id, target);
      }
    }
  }

  #placeFirst(progress: Progress): void {
    const { target, bytes } = progress;
    const takers = this.#workers.filter(({ draining }) => !draining);
    const able = takers.filter((worker) => hasDevices(worker, target.needs));
    const willing = able.filter((worker) => this.#mayLoad(worker, target));
    // A worker on which the very load is being stopped takes it again when that is done.
    const stopping = able.some((worker) => findLoad(worker, target) !== undefined);
    const { kind } = target.needs;
    const [free] = this.#ranked(willing, progress).filter(({ id }) => this.#room.free(id, kind) >= bytes);
    if (free !== undefined) return this.#load(free.id, progress);
    const [later] = this.#ranked(willing, progress).filter(({ id }) => this.#room.prospect(id, kind) >= bytes);
    // Reserved, so that nothing else takes the memory that comes free.
    if (later !== undefined) return this.#room.take(later.id, kind, bytes);
    for (const worker of this.#ranked(willing, progress)) if (this.#makeWay(worker, progress)) return;
    if (stopping) return;
    const why = takers.length === 0 ? 'no_worker' : able.length === 0 ? 'no_device' : willing.length === 0 ? 'excluded' : 'no_room';
    const { model, version, generation } = target;
    this.#unplaced.push({ model, version, generation, why });
  }

  /** Retires spare replicas of others on that worker until `progress` fits there, or does nothing. */
  #makeWay(worker: PlacementWorker, { target, bytes }: Progress): boolean {
    const { kind } = target.needs;
    const spare = worker.loads
      .filter((load) => load.kind === kind && load.state === 'active' && !this.#retired.has(at(worker.id, load)))
      .filter((load) => this.#isSpare(worker.id, load))
      .sort((a, b) => this.#room.bytesOf(b) - this.#room.bytesOf(a) || (loadKey(a) < loadKey(b) ? -1 : 1));
    let prospect = this.#room.prospect(worker.id, kind);
    const chosen: PlacedLoad[] = [];
    for (const load of spare) {
      if (prospect >= bytes) break;
      chosen.push(load);
      prospect += this.#room.bytesOf(load);
    }
    if (prospect < bytes) return false;
    for (const load of chosen) this.#retire(worker.id, load);
    this.#room.take(worker.id, kind, bytes);
    return true;
  }

  /** Another worker, that stays, serves the same load. */
  #isSpare(worker: string, load: PlacedLoad): boolean {
    const progress = this.#byLoad.get(loadKey(load));
    return progress !== undefined && progress.up.has(worker) && progress.up.size > 1;
  }

  #placeMore(progress: Progress): void {
    const { target, bytes, holders } = progress;
    const { kind } = target.needs;
    // A target that waits for its first replica has a place reserved, or none at all.
    if (holders.size === 0) return;
    const willing = this.#workers.filter((worker) => !worker.draining && hasDevices(worker, target.needs) && this.#mayLoad(worker, target));
    for (const { id } of this.#ranked(willing, progress)) {
      if (holders.size >= target.replicas) return;
      if (!holders.has(id) && this.#room.free(id, kind) >= bytes) this.#load(id, progress);
    }
  }

  /** Takes away what is too much, and what draining workers need not keep. */
  #thin(progress: Progress): void {
    const { target, holders, up, leaving } = progress;
    const excess = holders.size - target.replicas;
    if (excess > 0 && up.size >= target.replicas) {
      // Those that rank last, had they to be chosen now; what is still loading goes once it has loaded.
      const ranked = this.#ranked(
        this.#workers.filter(({ id }) => up.has(id)),
        progress,
      );
      for (const { id } of ranked.slice(target.replicas)) this.#retireAt(id, progress);
    }
    const wanted = Math.min(target.replicas, holders.size);
    if (up.size > 0 && up.size >= wanted) for (const id of [...leaving]) this.#retireAt(id, progress);
  }

  /** Retires loads that are of no target: leftovers of earlier owners, and generations that were replaced. */
  #sweep(): void {
    const wanted = new Map<string, Progress[]>();
    for (const progress of this.#targets) {
      const key = versionKey(progress.target);
      wanted.set(key, [...(wanted.get(key) ?? []), progress]);
    }
    for (const worker of this.#workers) {
      for (const load of worker.loads) {
        if (load.state === 'retiring' || load.state === 'loading' || this.#byLoad.has(loadKey(load))) continue;
        const targets = wanted.get(versionKey(load)) ?? [];
        // What answers for a version goes on until another generation does.
        if (targets.length === 0 || targets.some(({ target, up }) => target.active && up.size > 0)) this.#retire(worker.id, load);
      }
    }
  }

  #mayLoad(worker: PlacementWorker, target: PlacementTarget): boolean {
    return !target.excluded.has(worker.id) && findLoad(worker, target) === undefined;
  }

  /** The workers by what speaks for them: most free memory, fewest loads, then a hash that differs between models. */
  #ranked(workers: readonly PlacementWorker[], { target }: Progress): PlacementWorker[] {
    const { kind } = target.needs;
    const key = versionKey(target);
    const ranks = new Map(workers.map(({ id }) => [id, fnv1a(`${key} ${id}`)] as const));
    return [...workers].sort((a, b) => {
      const [freeA, freeB] = [this.#room.free(a.id, kind), this.#room.free(b.id, kind)];
      if (freeA !== freeB) return freeB > freeA ? 1 : -1;
      const loads = this.#room.loadsOn(a.id) - this.#room.loadsOn(b.id);
      return loads !== 0 ? loads : (ranks.get(a.id) ?? 0) - (ranks.get(b.id) ?? 0);
    });
  }

  #load(worker: string, { target, bytes, holders }: Progress): void {
    holders.add(worker);
    this.#room.take(worker, target.needs.kind, bytes);
    this.#act('load', worker, target);
  }

  #retireAt(worker: string, progress: Progress): void {
    const load = this.#workers.find(({ id }) => id === worker)?.loads.find((each) => loadKey(each) === loadKey(progress.target));
    if (load !== undefined && load.state !== 'loading') this.#retire(worker, load);
  }

  #retire(worker: string, load: PlacedLoad): void {
    const key = at(worker, load);
    if (this.#retired.has(key)) return;
    this.#retired.add(key);
    const progress = this.#byLoad.get(loadKey(load));
    for (const set of [progress?.holders, progress?.up, progress?.leaving]) set?.delete(worker);
    this.#room.giveUp(worker, load);
    this.#act('retire', worker, load);
  }

  #act(kind: PlacementAction['kind'], worker: string, { model, version, generation }: Omit<PlacementAction, 'kind' | 'worker'>): void {
    this.#actions.push({ kind, worker, model, version, generation });
  }
}

const at = (worker: string, load: PlacedLoad): string => `${worker} ${loadKey(load)}`;

function findLoad(worker: PlacementWorker, target: PlacementTarget): PlacedLoad | undefined {
  const { model, version, generation } = target;
  return worker.loads.find((load) => load.generation === generation && load.model === model && load.version === version);
}
