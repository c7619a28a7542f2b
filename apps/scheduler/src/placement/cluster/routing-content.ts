/** Puts together what gateways are told: the models that take requests, their partitions, the index, the readiness. */
import type { Routing } from '@paceline/protocol';
import type { ModelManager } from '../model-manager.js';
import type { WorkerFleet } from './worker-fleet.js';

export type RoutingContent = Omit<Routing, 'epoch' | 'generation'>;

/** @param partitionOf of a load that is served */
export function routingContent(
  manager: ModelManager,
  fleet: WorkerFleet,
  partitionOf: (load: { readonly model: string; readonly version: string; readonly generation: number }) => number,
): RoutingContent {
  const models = manager.serving().map(({ served, generation }) => {
    const { name: model, version } = served;
    const healthy = fleet.serving(model, version, generation).length > 0;
    return { model: served, generation, partition: partitionOf({ model, version, generation }), healthy };
  });
  return {
    models,
    index: manager.index(false),
    started: manager.started,
    allReady: manager.allReady() && models.every(({ healthy }) => healthy),
  };
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
