/**
 * Which loads the workers of the cluster announce, by model version and generation. Owns that picture and nothing else:
 * it is rebuilt from the workers' hellos whenever they connect.
 */
import type { InstanceEvent, LoadSpec, ModelAnnouncement } from '@paceline/worker-rpc';

/** One worker's part of a load. */
export interface Holder {
  readonly worker: string;
  state: ModelAnnouncement['state'];
  /** Local names, passive instances left out. */
  readonly instances: ReadonlySet<string>;
  /** As announced, with the devices. */
  readonly placed: Pick<ModelAnnouncement, 'instances' | 'devices'>;
  /** Those of them that are up. */
  readonly ready: Set<string>;
}

export interface Load {
  readonly model: string;
  readonly version: string;
  readonly generation: number;
  readonly spec: LoadSpec;
  /** By worker id. */
  readonly holders: Map<string, Holder>;
}

export class Loads {
  /** By model, then version, then generation. */
  readonly #versions = new Map<string, Map<number, Load>>();

  /** Every generation of a version that some worker has. */
  of(model: string, version: string): Iterable<Load> {
    return this.#versions.get(`${model}/${version}`)?.values() ?? [];
  }

  find(model: string, version: string, generation: number): Load | undefined {
    return this.#versions.get(`${model}/${version}`)?.get(generation);
  }

  *all(): Generator<Load> {
    for (const generations of this.#versions.values()) yield* generations.values();
  }

  announce(worker: string, announced: ModelAnnouncement): Load {
    const { spec, instances, ready, state } = announced;
    const { model, version, generation } = spec;
    const key = `${model}/${version}`;
    let generations = this.#versions.get(key);
    if (!generations) this.#versions.set(key, (generations = new Map<number, Load>()));
    let load = generations.get(generation);
    if (!load) generations.set(generation, (load = { model, version, generation, spec, holders: new Map<string, Holder>() }));
    load.holders.set(worker, { worker, state, instances: new Set(instances), placed: announced, ready: new Set(ready) });
    return load;
  }

  /** @returns the load it is about, if it is about one of its instances */
  instance(worker: string, { model, version, generation, instance, state }: InstanceEvent): Load | undefined {
    const load = this.find(model, version, generation);
    const holder = load?.holders.get(worker);
    if (!holder?.instances.has(instance)) return undefined;
    if (state === 'ready') holder.ready.add(instance);
    else holder.ready.delete(instance);
    return load;
  }

  /** The worker has it no more. @returns the load, with its other holders */
  gone(worker: string, model: string, version: string, generation: number): Load | undefined {
    const load = this.find(model, version, generation);
    if (!load?.holders.delete(worker)) return undefined;
    if (load.holders.size === 0) {
      const key = `${model}/${version}`;
      const generations = this.#versions.get(key);
      generations?.delete(generation);
      if (generations?.size === 0) this.#versions.delete(key);
    }
    return load;
  }

  /** The worker cannot be reached. @returns every load it had a part of */
  workerGone(worker: string): Load[] {
    const had = [...this.all()].filter(({ holders }) => holders.has(worker));
    for (const { model, version, generation } of had) this.gone(worker, model, version, generation);
    return had;
  }
}
