/** A cluster that carries out plans step by step, and checks each action against the rules that always hold. */
import { planPlacement } from '../plan.js';
import { loadKey, type PlacedLoad, type PlacementPlan, type PlacementTarget, type PlacementWorker } from '../target.js';

interface SimLoad {
  readonly load: PlacedLoad;
  /** Steps until loading or retiring has ended. */
  readonly left: number;
}

export interface SimWorker {
  readonly id: string;
  readonly memoryBytes: number;
  readonly gpu: boolean;
  draining: boolean;
  readonly loads: Map<string, SimLoad>;
}

export class SimCluster {
  readonly workers = new Map<string, SimWorker>();
  targets: PlacementTarget[] = [];
  actions = 0;

  constructor(private readonly random: () => number) {}

  add(id: string, memoryBytes: number, gpu = false): SimWorker {
    const worker = { id, memoryBytes, gpu, draining: false, loads: new Map() };
    this.workers.set(id, worker);
    return worker;
  }

  snapshot(): PlacementWorker[] {
    return [...this.workers.values()].map(({ id, memoryBytes, gpu, draining, loads }) => ({
      id,
      devices: [{ id: 'cpu', kind: 'cpu' as const, memoryBytes }, ...(gpu ? [{ id: 'gpu:0', kind: 'gpu' as const, memoryBytes }] : [])],
      draining,
      loads: [...loads.values()].map(({ load }) => load),
    }));
  }

  plan(): PlacementPlan {
    return planPlacement({ workers: this.snapshot(), targets: this.targets });
  }

  /** Workers that stay and answer for the target. */
  serving(target: PlacementTarget): string[] {
    return [...this.workers.values()]
      .filter(({ draining, loads }) => !draining && loads.get(loadKey(target))?.load.state === 'active')
      .map(({ id }) => id);
  }

  /** One plan carried out, and one step of what was begun before. @returns the plan */
  step(): PlacementPlan {
    const plan = this.plan();
    for (const action of plan.actions) {
      this.actions += 1;
      const worker = this.workers.get(action.worker);
      if (worker === undefined) throw new Error(`an action on worker ${action.worker}, which is not there`);
      const key = loadKey(action);
      const target = this.targets.find((each) => loadKey(each) === key);
      const held = worker.loads.get(key);
      if (action.kind === 'load') {
        if (held !== undefined || worker.draining || target === undefined) throw new Error(`must not load ${key} on ${worker.id}`);
        const { model, version, generation, needs } = target;
        const load = { model, version, generation, state: 'loading' as const, kind: needs.kind, memoryBytes: needs.memoryBytes };
        worker.loads.set(key, { load, left: 1 + Math.floor(this.random() * 3) });
        this.#checkMemory(worker);
        continue;
      }
      const expected = action.kind === 'activate' ? ['loaded'] : ['loaded', 'active'];
      if (held === undefined || !expected.includes(held.load.state)) throw new Error(`must not ${action.kind} ${key} on ${worker.id}`);
      const state = action.kind === 'activate' ? 'active' : 'retiring';
      worker.loads.set(key, { load: { ...held.load, state }, left: action.kind === 'activate' ? 0 : 1 + Math.floor(this.random() * 3) });
      if (state === 'retiring' && target?.active === true && this.serving(target).length === 0) {
        throw new Error(`the last replica of ${key} was retired`);
      }
    }
    for (const { loads } of this.workers.values()) {
      for (const [key, { load, left }] of loads) {
        if (left > 1) loads.set(key, { load, left: left - 1 });
        else if (load.state === 'retiring') loads.delete(key);
        else if (load.state === 'loading') loads.set(key, { load: { ...load, state: 'loaded' }, left: 0 });
      }
    }
    return plan;
  }

  #checkMemory({ id, memoryBytes, loads }: SimWorker): void {
    for (const kind of ['cpu', 'gpu']) {
      const used = [...loads.values()].reduce((sum, { load }) => (load.kind === kind ? sum + load.memoryBytes : sum), 0);
      if (used > memoryBytes) throw new Error(`worker ${id} has ${memoryBytes} bytes of ${kind} memory, and ${used} are given away`);
    }
  }
}
