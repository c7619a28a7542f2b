export * from './request/index.js';
export { SIMULATED_BACKEND } from './model-config/backend.js';
export { configDataType, configDataTypeName, isServedDataType, wireDataType } from './model-config/datatype.js';
export { FIELD_TABLE, fieldRule, type FieldRule } from './model-config/field-table.js';
export {
  CPU_DEVICE,
  gpuDevice,
  gpuOf,
  gpusUsed,
  isPassive,
  planInstances,
  type InstanceDevices,
  type InstancePlan,
  type MissingGpu,
  type PlannedInstance,
} from './model-config/instances.js';
export type { ConfigIssue, ConfigWarning } from './model-config/issue.js';
export { jsonStates, modelConfigFromJson, modelConfigToJson } from './model-config/json.js';
export {
  finishConfig,
  prepareConfig,
  type ConfigSource,
  type FinishedConfig,
  type FinishOptions,
  type Judged,
  type Prepared,
} from './model-config/prepare.js';
export { simulatedAccelerator, type SimulatedAccelerator } from './model-config/simulated.js';
export { warmupTensor } from './model-config/warmup-data.js';
export type { WarmupContent, WarmupInputPlan, WarmupPlan } from './model-config/warmup.js';
export { mapShape } from './model-config/validate-reshape.js';
export { selectVersions, type VersionSelection } from './model-config/version-policy.js';
export { DynamicBatcher } from './batching/dynamic-batcher.js';
export type { Capacity, Decision, Dispatch, DispatchReason, Shed, Wait } from './batching/decision.js';
export {
  batchPolicyOf,
  DEFAULT_MAX_QUEUE_SIZE,
  DEFAULT_QUEUE_TIMEOUT_US,
  levelOf,
  maxQueuedOf,
  queueTimeoutOf,
  type BatchPolicy,
  type LevelPolicy,
} from './batching/policy.js';
export { BatchProfile } from './batching/profile.js';
export type { QueuedRequest } from './batching/waiting-room.js';
export type { Handle } from './batching/request-table.js';
export * from './placement/index.js';
export { shareOf, shareQuota, type ShareActions, type ShareView } from './cluster/partition-share.js';
export { unresolvedModel, type KnownVersions } from './models/unresolved.js';
