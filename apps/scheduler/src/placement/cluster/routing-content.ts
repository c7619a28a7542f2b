/** Puts together what gateways are told: the models that take requests, their partitions, the index, the readiness. */
import { assignPartitions, needsOf, versionKey, type PartitionMember } from '@paceline/core';
import type { Routing, ServedModel } from '@paceline/protocol';
import type { ModelManager } from '../model-manager.js';
import type { WorkerFleet } from './worker-fleet.js';

export type RoutingContent = Omit<Routing, 'epoch' | 'generation'>;

export class RoutingContents {
  /** What the versions had in the last content: a group of models on one GPU stays where it is. */
  #partitions: ReadonlyMap<string, number> = new Map();

  constructor(
    private readonly manager: ModelManager,
    private readonly fleet: WorkerFleet,
    private readonly partitions: number,
  ) {}

  /** As it is now. */
  now(): RoutingContent {
    const { manager, fleet } = this;
    const models = manager.serving().map(({ served, generation }) => {
      const workers = fleet.serving(served.name, served.version, generation);
      return { model: served, generation, workers, healthy: workers.length > 0 };
    });
    const members = models.map(({ model, workers }) => this.#memberOf(model, workers));
    const partitions = assignPartitions(members, this.partitions, this.#partitions);
    this.#partitions = partitions;
    return {
      models: models.map(({ model, generation, healthy }) => {
        const partition = partitions.get(versionKey({ model: model.name, version: model.version })) ?? 0;
        return { model, generation, partition, healthy };
      }),
      index: manager.index(false),
      started: manager.started,
      allReady: manager.allReady() && models.every(({ healthy }) => healthy),
    };
  }

  #memberOf({ name, version, config }: ServedModel, workers: readonly string[]): PartitionMember {
    const { kind, devices } = needsOf(config, 0);
    if (kind !== 'gpu') return { model: name, version, gpus: [] };
    const gpus = workers.flatMap((id) => {
      const own = this.fleet.workers.get(id)?.devices.filter((device) => device.kind === 'gpu') ?? [];
      return (devices.length > 0 ? devices : own.map((device) => device.id)).map((gpu) => `${id}/${gpu}`);
    });
    return { model: name, version, gpus };
  }
}

/** Served models are immutable, so that identity tells whether one has changed. */
export function isSameContent(a: RoutingContent, b: RoutingContent): boolean {
  if (a.started !== b.started || a.allReady !== b.allReady || a.models.length !== b.models.length) return false;
  const models = a.models.every((model, i) => {
    const other = b.models[i];
    return (
      model.model === other?.model &&
      model.generation === other.generation &&
      model.partition === other.partition &&
      model.healthy === other.healthy
    );
  });
  return models && JSON.stringify(a.index) === JSON.stringify(b.index);
}
