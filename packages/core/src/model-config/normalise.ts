/** Writes the effective defaults into a configuration, in Triton's order, so that later readers need no rules of their own. */
import { create } from '@bufbuild/protobuf';
import {
  ModelInstanceGroup_Kind as Kind,
  ModelInstanceGroupSchema,
  ModelOptimizationPolicy_PinnedMemoryBufferSchema as PinnedMemoryBufferSchema,
  ModelOptimizationPolicySchema,
  ModelVersionPolicySchema,
  type ModelConfig,
  type ModelInstanceGroup,
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
  /**
   * Numbers of the GPUs that the model can run on; absent = there is none. `by-worker`: it is loaded on workers with
   * different devices, and each of them decides for its own what a group of KIND_AUTO is.
   */
  readonly gpus?: readonly number[] | 'by-worker';
}

/** Names, kinds, counts and GPUs of the instance groups. @param config changed in place */
export function normaliseInstanceGroups(config: ModelConfig, { cpuInstanceCount, gpus = [] }: InstanceDefaults): void {
  const groups = config.instanceGroup;
  if (groups.length === 0) groups.push(create(ModelInstanceGroupSchema, { name: config.name }));
  groups.forEach((group, index) => {
    if (group.name === '') group.name = `${config.name}_${index}`;
    if (group.kind === Kind.AUTO) group.kind = kindOf(group, gpus);
    if (group.kind === Kind.GPU && group.gpus.length === 0 && gpus !== 'by-worker') group.gpus.push(...gpus);
    // Of an undecided group 0 stays: it depends on the kind.
    if (group.count < 1 && group.kind !== Kind.AUTO) group.count = group.kind === Kind.CPU ? cpuInstanceCount : 1;
  });
}

/** A list of GPUs is a wish for them: where one is missing, the model does not load, as with Triton. */
function kindOf(group: ModelInstanceGroup, gpus: readonly number[] | 'by-worker'): Kind {
  if (group.gpus.length > 0) return Kind.GPU;
  if (gpus === 'by-worker') return Kind.AUTO;
  return gpus.length > 0 ? Kind.GPU : Kind.CPU;
}
