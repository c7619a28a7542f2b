export type { LaneHost, LaneSpec } from './placement/lane-host.js';
export type { ModelEvent, ModelEventListener } from './placement/model-events.js';
export {
  ModelManager,
  type ControlMode,
  type ModelManagerOptions,
  type ModelManagerPorts,
  type StartReport,
} from './placement/model-manager.js';
export { PlacementOwner } from './placement/cluster/placement-owner.js';
export type { PlacementOptions, PlacementPorts } from './placement/cluster/placement-ports.js';
export type { ModelSource, SourceModel, SourceVersion } from './placement/model-source.js';
export type { Finding } from './placement/config-report.js';
export { RepositoryModelSource, type Inspection, type RepositorySourceOptions } from './placement/repository-source.js';
export { Lanes, type LanesOptions } from './batching/lanes.js';
export { LaneIntake, type LaneDirectory } from './intake/lane-intake.js';
export { laneQueueTimeoutUs } from './process/limits.js';
export { modelEventLog } from './process/model-log.js';
export { sourceOptions } from './process/source-options.js';
