export { needsOf, wantedReplicas } from './needs.js';
export { assignPartitions, partitionOf, type PartitionMember } from './partition.js';
export { planPlacement } from './plan.js';
export {
  loadKey,
  versionKey,
  type PlacedLoad,
  type PlacementAction,
  type PlacementNeeds,
  type PlacementPlan,
  type PlacementSnapshot,
  type PlacementTarget,
  type PlacementWorker,
  type Unplaced,
} from './target.js';
