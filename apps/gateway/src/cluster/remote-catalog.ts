/**
 * The model catalog of a gateway whose models are placed elsewhere: what the placement owner published last. Invariants: a
 * routing replaces an older one whole; a load keeps its object from routing to routing, since much is kept by it.
 */
import { unresolvedModel } from '@paceline/core';
import {
  isCurrentEpoch,
  ServingError,
  type ModelCatalog,
  type ModelIndexEntry,
  type RoutedModel,
  type Routing,
  type ServedModel,
} from '@paceline/protocol';

interface KnownModel {
  readonly name: string;
  /** The highest version that takes requests. */
  latest: RoutedModel | undefined;
  /** Those that take requests, ascending by number. */
  readonly ready: Map<string, RoutedModel>;
  /** Every version that the index has. */
  readonly versions: Set<string>;
}

/**
 * - `taken`: it is what requests are routed by from now on.
 * - `known`: it is that already.
 * - `old`: there is a newer one, or one of a newer owner.
 */
export type Offered = 'taken' | 'known' | 'old';

const byVersion = (a: RoutedModel, b: RoutedModel): number => (BigInt(a.model.version) < BigInt(b.model.version) ? -1 : 1);

export class RemoteCatalog implements ModelCatalog {
  #routing: Routing | undefined;
  #models = new Map<string, KnownModel>();
  #served: readonly ServedModel[] = [];

  /** @param onRemoved told of each version that takes no requests any more and is not in the index either */
  constructor(private readonly onRemoved: (model: string, version: string) => void = () => undefined) {}

  offer(offered: Routing): Offered {
    const known = this.#routing;
    if (known && !isCurrentEpoch(offered.epoch, known.epoch)) return 'old';
    if (known && offered.epoch.number === known.epoch.number && offered.generation <= known.generation)
      return offered.generation === known.generation ? 'known' : 'old';
    const before = this.#models;
    const models = offered.models.map((routed) => keepIdentity(routed, before.get(routed.model.name)?.ready.get(routed.model.version)));
    this.#routing = { ...offered, models };
    this.#models = modelsOf(models, offered.index);
    this.#served = models.map(({ model }) => model);
    for (const { name, versions } of before.values())
      for (const version of versions) if (!this.#models.get(name)?.versions.has(version)) this.onRemoved(name, version);
    return 'taken';
  }

  /** What requests are routed by; undefined before the first one came. */
  get routing(): Routing | undefined {
    return this.#routing;
  }

  get started(): boolean {
    return this.#routing?.started === true;
  }

  resolve(name: string, version: string): ServedModel {
    const known = this.#models.get(name);
    const routed = version === '' ? known?.latest : known?.ready.get(version);
    if (routed !== undefined) return routed.model;
    const error = unresolvedModel(name, version, known && { any: known.versions.size > 0, asked: known.versions.has(version) });
    // While models are still being looked up and loaded, nobody can say that one does not exist.
    throw this.started || error.code !== 'NOT_FOUND' ? error : notStarted(name);
  }

  /** The version that takes requests under that number, if there is one. */
  find(name: string, version: string): ServedModel | undefined {
    return this.#models.get(name)?.ready.get(version)?.model;
  }

  /** The partition that takes its requests; undefined where it takes none. */
  partitionOf(name: string, version: string): number | undefined {
    return this.#models.get(name)?.ready.get(version)?.partition;
  }

  readyVersions(name: string): readonly string[] {
    return [...(this.#models.get(name)?.ready.keys() ?? [])];
  }

  isHealthy({ name, version }: ServedModel): boolean {
    return this.#models.get(name)?.ready.get(version)?.healthy === true;
  }

  served(): readonly ServedModel[] {
    return this.#served;
  }

  allReady(): boolean {
    return this.#routing?.started === true && this.#routing.allReady;
  }

  index(readyOnly: boolean): readonly ModelIndexEntry[] {
    const index = this.#routing?.index ?? [];
    return readyOnly ? index.filter(({ state }) => state === 'READY') : index;
  }
}

/** Until a gateway has heard of models, or until they are loaded: trying again makes sense soon. */
const TRY_AGAIN_MS = 1000;

function notStarted(name: string): ServingError {
  return new ServingError('UNAVAILABLE', `model '${name}' cannot be served yet: the models of the cluster are still being loaded`, {
    reason: 'starting',
    retryAfterMs: TRY_AGAIN_MS,
  });
}

function keepIdentity(offered: RoutedModel, known: RoutedModel | undefined): RoutedModel {
  return known?.generation === offered.generation ? { ...offered, model: known.model } : offered;
}

function modelsOf(routed: readonly RoutedModel[], index: readonly ModelIndexEntry[]): Map<string, KnownModel> {
  const models = new Map<string, KnownModel>();
  const of = (name: string): KnownModel => {
    let known = models.get(name);
    if (known === undefined) {
      known = { name, latest: undefined, ready: new Map(), versions: new Set() };
      models.set(name, known);
    }
    return known;
  };
  for (const each of [...routed].sort(byVersion)) {
    const known = of(each.model.name);
    known.latest = each;
    known.ready.set(each.model.version, each);
    known.versions.add(each.model.version);
  }
  for (const { name, version } of index) if (version !== undefined) of(name).versions.add(version);
  return models;
}
