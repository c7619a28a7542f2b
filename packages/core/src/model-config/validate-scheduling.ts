/** Judges batch sizes, priorities, queue policies and instance groups. Texts are Triton's where it has one. */
import {
  ModelInstanceGroup_Kind as Kind,
  ModelQueuePolicy_TimeoutAction as TimeoutAction,
  type ModelConfig,
  type ModelDynamicBatching,
  type ModelInstanceGroup,
} from '@paceline/protocol/model-config';
import type { IssueList } from './issue.js';

/** Largest value of a field that later arithmetic keeps in a number, microseconds. */
const MAX_DURATION_US = BigInt(Number.MAX_SAFE_INTEGER);

function checkDynamicBatching(batching: ModelDynamicBatching, config: ModelConfig, issues: IssueList): void {
  const model = config.name;
  const at = (field: string): string => `dynamic_batching.${field}`;
  batching.preferredBatchSize.forEach((size, i) => {
    if (size <= 0) {
      issues.add(at(`preferred_batch_size[${i}]`), `dynamic batching preferred size must be positive for ${model}`, `found ${size}`);
    } else if (size > config.maxBatchSize) {
      issues.add(at(`preferred_batch_size[${i}]`), `dynamic batching preferred size must be <= max batch size for ${model}`,
        `found ${size}, and max_batch_size is ${config.maxBatchSize}`); // prettier-ignore
    }
  });
  if (batching.maxQueueDelayMicroseconds > MAX_DURATION_US) {
    issues.add(at('max_queue_delay_microseconds'), `max queue delay must be <= ${MAX_DURATION_US} microseconds for ${model}`);
  }
  checkPriorities(batching, model, issues);
  if (!batching.preserveOrdering) return;
  if (batching.priorityLevels > 1n) {
    issues.add(at('preserve_ordering'), `Only one priority level is allowed when 'preserve_ordering' is true for ${model}`,
      `found priority_levels: ${batching.priorityLevels}`); // prettier-ignore
  }
  const delays = [batching.defaultQueuePolicy, ...Object.values(batching.priorityQueuePolicy)];
  if (delays.some((policy) => policy?.timeoutAction === TimeoutAction.DELAY)) {
    issues.add(at('preserve_ordering'), `Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ${model}`);
  }
}

function checkPriorities(batching: ModelDynamicBatching, model: string, issues: IssueList): void {
  const levels = batching.priorityLevels;
  const range = `[1, ${levels}]`;
  if (levels > 0n && (batching.defaultPriorityLevel < 1n || batching.defaultPriorityLevel > levels)) {
    issues.add('dynamic_batching.default_priority_level', `default priority level must be in range ${range} for ${model}`,
      `found ${batching.defaultPriorityLevel}`); // prettier-ignore
  }
  for (const key of Object.keys(batching.priorityQueuePolicy)) {
    const level = BigInt(key);
    if (level < 1n || level > levels) {
      issues.add(`dynamic_batching.priority_queue_policy["${key}"]`,
        `priority queue policy must have priority level in range ${range} for ${model}`, `found ${key}`); // prettier-ignore
    }
  }
}

/** What can be judged before the model file is read. */
export function checkScheduling(config: ModelConfig, issues: IssueList): void {
  if (config.maxBatchSize < 0) {
    issues.add('max_batch_size', `'max_batch_size' must be non-negative value for ${config.name}`, `found ${config.maxBatchSize}`);
  }
  if (config.platform === 'ensemble' && config.schedulingChoice.case !== 'ensembleScheduling') {
    issues.add('platform', `ensemble scheduling must be set for ensemble ${config.name} whose platform is ensemble`);
  }
  if (config.schedulingChoice.case === 'dynamicBatching' && config.maxBatchSize >= 0) {
    checkDynamicBatching(config.schedulingChoice.value, config, issues);
  }
}

function groupFault(group: ModelInstanceGroup, { name: model }: ModelConfig): string | undefined {
  const name = `instance group ${group.name} of model ${model}`;
  const negative = group.gpus.find((gpu) => gpu < 0);
  if (negative !== undefined) return `${name} specifies invalid or unsupported gpu id ${negative}`;
  // Whether there are such GPUs is for the worker to say.
  if (group.kind === Kind.GPU || group.kind === Kind.AUTO || group.gpus.length === 0) return undefined;
  return `${name} has kind KIND_${Kind[group.kind]} but specifies one or more GPUs`;
}

/** After normalisation of the groups. */
export function checkInstanceGroups(config: ModelConfig, issues: IssueList): void {
  const names = new Set<string>();
  config.instanceGroup.forEach((group, i) => {
    const fault = groupFault(group, config);
    if (fault !== undefined) issues.add(`instance_group[${i}].kind`, fault, 'write kind: KIND_GPU, or leave gpus out');
    if (names.has(group.name)) {
      issues.add(`instance_group[${i}].name`, `instance group name '${group.name}' is used twice for ${config.name}`);
    }
    names.add(group.name);
  });
  if (config.instanceGroup.every((group) => group.passive)) {
    issues.add('instance_group', `every instance group of model ${config.name} is passive, so that no request could run`);
  }
}
