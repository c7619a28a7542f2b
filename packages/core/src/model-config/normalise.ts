/** Writes the effective defaults into a configuration, in Triton's order, so that later readers need no rules of their own. */
import { create } from '@bufbuild/protobuf';
import {
  ModelInstanceGroup_Kind as Kind,
  ModelInstanceGroupSchema,
  ModelOptimizationPolicy_PinnedMemoryBufferSchema as PinnedMemoryBufferSchema,
  ModelOptimizationPolicySchema,
  ModelVersionPolicySchema,
  type ModelConfig,
} from '@paceline/protocol/model-config';

/** Version policy, preferred batch sizes and pinned memory. @param config changed in place */
export function normaliseConfig(config: ModelConfig): void {
  if (config.versionPolicy?.policyChoice.case === undefined) {
    config.versionPolicy = create(ModelVersionPolicySchema, { policyChoice: { case: 'latest', value: { numVersions: 1 } } });
  }
  normalisePreferredBatchSizes(config);
  config.optimization ??= create(ModelOptimizationPolicySchema);
  config.optimization.inputPinnedMemory ??= create(PinnedMemoryBufferSchema, { enable: true });
  config.optimization.outputPinnedMemory ??= create(PinnedMemoryBufferSchema, { enable: true });
}

/** A dynamic batcher without preferred sizes prefers the largest. @param config changed in place */
export function normalisePreferredBatchSizes(config: ModelConfig): void {
  const { schedulingChoice, maxBatchSize } = config;
  if (schedulingChoice.case !== 'dynamicBatching') return;
  const { preferredBatchSize } = schedulingChoice.value;
  if (preferredBatchSize.length === 0 && maxBatchSize > 0) preferredBatchSize.push(maxBatchSize);
}

export interface InstanceDefaults {
  /** Instances of a CPU group that states no count; Triton's ONNX Runtime backend prefers 2. */
  readonly cpuInstanceCount: number;
}

/** Names, kinds and counts of the instance groups. No machine with a GPU is served: AUTO is CPU. @param config changed in place */
export function normaliseInstanceGroups(config: ModelConfig, defaults: InstanceDefaults): void {
  const groups = config.instanceGroup;
  if (groups.length === 0) groups.push(create(ModelInstanceGroupSchema, { name: config.name }));
  groups.forEach((group, index) => {
    if (group.name === '') group.name = `${config.name}_${index}`;
    if (group.kind === Kind.AUTO && group.gpus.length === 0) group.kind = Kind.CPU;
    if (group.count < 1) group.count = group.kind === Kind.CPU ? defaults.cpuInstanceCount : 1;
  });
}
