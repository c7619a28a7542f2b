/**
 * Chooses the partition of a load, once for its life: every announcement carries it, and lanes open by it. A load that
 * shares a GPU with others gets theirs, so that one scheduler decides for that GPU.
 */
import {
  assignPartitions,
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
  if (load.needs.kind !== 'gpu') return byHash;
  const key = versionKey(load.spec);
  const standing = new Map<string, number>();
  for (const { spec } of others) if (spec.partition !== undefined) standing.set(versionKey(spec), spec.partition);
  const members = others.filter(({ spec, needs }) => needs.kind === 'gpu' && versionKey(spec) !== key);
  return (
    assignPartitions(
      [...members, load].map((each) => memberOf(each, fleet)),
      partitions,
      standing,
    ).get(key) ?? byHash
  );
}

function memberOf({ spec, needs, workers }: PlacedOn, fleet: WorkerFleet): PartitionMember {
  const gpus = workers.flatMap((id) => {
    const own = fleet.workers.get(id)?.devices.filter(({ kind }) => kind === 'gpu') ?? [];
    return (needs.devices.length > 0 ? needs.devices : own.map((device) => device.id)).map((gpu) => `${id}/${gpu}`);
  });
  return { model: spec.model, version: spec.version, gpus };
}
