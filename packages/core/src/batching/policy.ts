/**
 * The part of a model configuration that decides batching, as plain numbers: read once when a lane opens, so that the
 * hot path never touches protobuf messages or bigints. Nothing here is endless: a queue without a configured size or
 * timeout gets a default one.
 */
import { isBatchInvariant, latencyObjectiveUs } from '../model-config/parameters.js';
import { ModelQueuePolicy_TimeoutAction, type ModelConfig, type ModelQueuePolicy } from '@paceline/protocol/model-config';

/**
 * Requests one priority level may hold where `max_queue_size` is 0. Large enough that no client of an ordinary load is
 * refused (a minute of work at 68 requests a second), small enough that a stalled model cannot exhaust memory.
 */
export const DEFAULT_MAX_QUEUE_SIZE = 4096;

/** The longest a request may queue where its model names no timeout: the default request timeout of the gateways. */
export const DEFAULT_QUEUE_TIMEOUT_US = 60_000_000;

/** What happens to the requests of one priority level, with Triton's meaning of each field. */
export interface LevelPolicy {
  readonly timeoutAction: 'REJECT' | 'DELAY';
  /** 0 = the level has no timeout of its own. */
  readonly defaultTimeoutUs: number;
  /** A request may ask for a shorter timeout than the level's; never for a longer one. */
  readonly allowTimeoutOverride: boolean;
  /** Requests, never 0. */
  readonly maxQueueSize: number;
}

export interface BatchPolicy {
  /** False: each request runs alone (no `dynamic_batching`, or `max_batch_size` 0). */
  readonly batching: boolean;
  /** Rows an execution may have at most; at least 1. */
  readonly maxRows: number;
  /**
   * Ascending, each at most `maxRows`. Empty where the configuration leaves the choice to the server, which is also
   * what the normalised default `[max_batch_size]` means: only then is the learned peak applied.
   */
  readonly preferredRows: readonly number[];
  /** 0 = never wait to fill. */
  readonly maxQueueDelayUs: number;
  /** From arrival to reply, microseconds; 0 = none. Where there is one it takes the place of preferred sizes and delay. */
  readonly objectiveUs: number;
  readonly preserveOrdering: boolean;
  /** Number of priority levels, at least 1; level 1 is the highest. */
  readonly levels: number;
  /** In 1..levels; for requests that ask for 0 or for a level that does not exist. */
  readonly defaultLevel: number;
  readonly defaultQueue: LevelPolicy;
  /** Levels that differ from `defaultQueue`. */
  readonly queueByLevel: ReadonlyMap<number, LevelPolicy>;
  /** Bound on queueing for requests without any other timeout. */
  readonly queueTimeoutUs: number;
}

function levelPolicy(policy: ModelQueuePolicy | undefined): LevelPolicy {
  return {
    timeoutAction: policy?.timeoutAction === ModelQueuePolicy_TimeoutAction.DELAY ? 'DELAY' : 'REJECT',
    defaultTimeoutUs: Number(policy?.defaultTimeoutMicroseconds ?? 0n),
    allowTimeoutOverride: policy?.allowTimeoutOverride ?? false,
    maxQueueSize: policy?.maxQueueSize ? policy.maxQueueSize : DEFAULT_MAX_QUEUE_SIZE,
  };
}

/**
 * The batching policy of a normalised configuration.
 * @param queueTimeoutUs bound on queueing where the model names none, microseconds
 */
export function batchPolicyOf(config: ModelConfig, queueTimeoutUs: number = DEFAULT_QUEUE_TIMEOUT_US): BatchPolicy {
  const dynamic = config.schedulingChoice.case === 'dynamicBatching' ? config.schedulingChoice.value : undefined;
  const maxRows = Math.max(1, config.maxBatchSize);
  const objectiveUs = latencyObjectiveUs(config) ?? 0;
  const batching = dynamic !== undefined && config.maxBatchSize > 0 && !isBatchInvariant(config);
  const preferred =
    batching && objectiveUs === 0
      ? [...new Set(dynamic.preferredBatchSize)].filter((n) => n >= 1 && n <= maxRows).sort((a, b) => a - b)
      : [];
  const levels = Math.max(1, Number(dynamic?.priorityLevels ?? 0n));
  const configuredDefault = Number(dynamic?.defaultPriorityLevel ?? 0n);
  const queueByLevel = new Map<number, LevelPolicy>();
  for (const [level, policy] of Object.entries(dynamic?.priorityQueuePolicy ?? {})) queueByLevel.set(Number(level), levelPolicy(policy));
  return {
    batching,
    maxRows,
    preferredRows: preferred.length === 1 && preferred[0] === maxRows ? [] : preferred,
    maxQueueDelayUs: batching && objectiveUs === 0 ? Number(dynamic.maxQueueDelayMicroseconds) : 0,
    objectiveUs,
    preserveOrdering: dynamic?.preserveOrdering ?? false,
    levels,
    defaultLevel: configuredDefault >= 1 && configuredDefault <= levels ? configuredDefault : 1,
    defaultQueue: levelPolicy(dynamic?.defaultQueuePolicy),
    queueByLevel,
    queueTimeoutUs,
  };
}

/** The level a request runs at: its own where that exists, else the default one. */
export function levelOf(policy: BatchPolicy, priority: number): number {
  return priority >= 1 && priority <= policy.levels ? priority : policy.defaultLevel;
}

/**
 * How long a request of that level may queue before its timeout action applies, microseconds; 0 = no timeout.
 * A level without a timeout counts as endless, so that where overriding is allowed any asked timeout is a shorter one.
 */
export function queueTimeoutOf(policy: LevelPolicy, askedUs: number): number {
  if (!policy.allowTimeoutOverride || askedUs <= 0) return policy.defaultTimeoutUs;
  if (policy.defaultTimeoutUs === 0) return askedUs;
  return Math.min(askedUs, policy.defaultTimeoutUs);
}

/** Requests that may wait in a lane of that policy, all priority levels together. */
export function maxQueuedOf(policy: BatchPolicy): number {
  // Not level by level: there may be billions of them.
  let sum = (policy.levels - policy.queueByLevel.size) * policy.defaultQueue.maxQueueSize;
  for (const { maxQueueSize } of policy.queueByLevel.values()) sum += maxQueueSize;
  return sum;
}
