/**
 * Which partition takes the requests of a model version. Versions that share a GPU share a partition, so that one
 * scheduler decides for that GPU; the others are spread by a hash of their name. Pure and stable: the same versions on
 * the same devices get the same partitions from every placement owner.
 */
import { fnv1a } from './hash.js';
import { versionKey } from './target.js';

/** A model version and the GPUs its replicas use, each named across the cluster (`<worker>/gpu:0`). */
export interface PartitionMember {
  readonly model: string;
  readonly version: string;
  readonly gpus: readonly string[];
}

/** The partition of a version that shares no device. @param partitions how many there are, at least 1 */
export function partitionOf(model: string, version: string, partitions: number): number {
  return fnv1a(`${model}/${version}`) % partitions;
}

/**
 * @param previous what the versions have now, by {@link versionKey}: a group stays where most of its members are, so that
 * a newcomer does not move the others
 * @returns by {@link versionKey}
 */
export function assignPartitions(
  members: readonly PartitionMember[],
  partitions: number,
  previous: ReadonlyMap<string, number> = new Map(),
): Map<string, number> {
  const assigned = new Map<string, number>();
  for (const group of groupsByGpu(members)) {
    const partition = group.length === 1 ? undefined : commonest(group, previous, partitions);
    for (const { model, version } of group) {
      assigned.set(versionKey({ model, version }), partition ?? partitionOf(model, version, partitions));
    }
  }
  return assigned;
}

/** Members that are joined by the GPUs they use, directly or through others; sorted, each group too. */
function groupsByGpu(members: readonly PartitionMember[]): PartitionMember[][] {
  const sorted = [...members].sort((a, b) => (versionKey(a) < versionKey(b) ? -1 : 1));
  const groups = new Set<PartitionMember[]>();
  const ofGpu = new Map<string, PartitionMember[]>();
  for (const member of sorted) {
    const joined = new Set(member.gpus.flatMap((gpu) => ofGpu.get(gpu) ?? []));
    const touched = [...groups].filter((group) => group.some((each) => joined.has(each)));
    const merged = [...touched.flat(), member];
    for (const group of touched) groups.delete(group);
    groups.add(merged);
    for (const each of merged) for (const gpu of each.gpus) ofGpu.set(gpu, merged);
  }
  return [...groups];
}

function commonest(group: readonly PartitionMember[], previous: ReadonlyMap<string, number>, partitions: number): number {
  const votes = new Map<number, number>();
  for (const member of group) {
    const partition = previous.get(versionKey(member));
    if (partition !== undefined && partition < partitions) votes.set(partition, (votes.get(partition) ?? 0) + 1);
  }
  const [first] = group;
  let best = first === undefined ? 0 : partitionOf(first.model, first.version, partitions);
  let most = 0;
  for (const [partition, count] of [...votes].sort(([a], [b]) => a - b)) if (count > most) [best, most] = [partition, count];
  return best;
}
