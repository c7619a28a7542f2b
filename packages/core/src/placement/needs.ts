/** What the configuration of a model asks of the workers that serve it: kind of device, memory, number of replicas. */
import { ModelInstanceGroup_Kind as Kind, type ModelConfig } from '@paceline/protocol/model-config';
import { replicasOf } from '../model-config/parameters.js';
import type { PlacementNeeds } from './target.js';

/**
 * @param config normalised
 * @param bytesPerInstance memory of one instance as far as it is known, e.g. the size of the model file; 0 = not known
 */
export function needsOf(config: ModelConfig, bytesPerInstance: number): PlacementNeeds {
  const groups = config.instanceGroup;
  const onGpu = groups.filter((group) => group.kind === Kind.GPU || (group.kind === Kind.AUTO && group.gpus.length > 0));
  const counted = onGpu.length > 0 ? onGpu : groups;
  // A group has its count on each GPU that it names.
  const instances = counted.reduce((sum, group) => sum + Math.max(1, group.count) * Math.max(1, group.gpus.length), 0);
  return {
    kind: onGpu.length > 0 ? 'gpu' : 'cpu',
    devices: [...new Set(onGpu.flatMap((group) => group.gpus.map((gpu) => `gpu:${gpu}`)))].sort(),
    memoryBytes: bytesPerInstance * Math.max(1, instances),
  };
}

/** How many workers are to serve the model at most; Infinity where the configuration does not say. */
export const wantedReplicas = (config: ModelConfig): number => replicasOf(config) ?? Infinity;
