/**
 * Chooses the partition of a load, once for its life: every announcement carries it, and lanes open by it. A load that
 * shares a GPU with others gets theirs, so that one scheduler decides for that GPU.
 */
import {
  assignPartitions,
  gpuDevice,
  gpuOf,
  gpusUsed,
  loadKey,
  partitionOf,
  versionKey,
  type PartitionMember,
  type PlacementAction,
  type PlacementNeeds,
  type PlacementSnapshot,
} from '@paceline/core';
import type { LoadSpec } from '@paceline/worker-rpc';
import type { WorkerFleet } from './worker-fleet.js';

/** A load, and the workers it is on or will be. */
export interface PlacedOn {
  readonly spec: LoadSpec;
  readonly needs: PlacementNeeds;
  readonly workers: readonly string[];
}

/** Workers that have a load, are loading it, or are about to by `actions`. */
export function workersOf(spec: LoadSpec, { workers }: PlacementSnapshot, actions: readonly PlacementAction[]): string[] {
  const key = loadKey(spec);
  const having = workers.filter(({ loads }) => loads.some((load) => loadKey(load) === key)).map(({ id }) => id);
  const coming = actions.filter((action) => action.kind === 'load' && loadKey(action) === key).map(({ worker }) => worker);
  return [...having, ...coming];
}

/** @param others loads whose partition stands */
export function choosePartition(load: PlacedOn, others: readonly PlacedOn[], fleet: WorkerFleet, partitions: number): number {
  const { model, version } = load.spec;
  const byHash = partitionOf(model, version, partitions);
  const own = memberOf(load, fleet);
  if (own.gpus.length === 0) return byHash;
  const key = versionKey(load.spec);
  const standing = new Map<string, number>();
  for (const { spec } of others) if (spec.partition !== undefined) standing.set(versionKey(spec), spec.partition);
  const members = others.map((each) => memberOf(each, fleet)).filter((member) => member.gpus.length > 0 && versionKey(member) !== key);
  return assignPartitions([...members, own], partitions, standing).get(key) ?? byHash;
}

/** A group that leaves its kind to the worker is on every GPU of those that have some. */
function memberOf({ spec, workers }: PlacedOn, fleet: WorkerFleet): PartitionMember {
  const gpus = workers.flatMap((id) => {
    const present = (fleet.workers.get(id)?.devices ?? []).flatMap((device) => gpuOf(device.id) ?? []);
    return gpusUsed(spec.config, present).map((gpu) => `${id}/${gpuDevice(gpu)}`);
  });
  return { model: spec.model, version: spec.version, gpus };
}
