/** Batch policies for tests: a policy with dynamic batching and nothing else set, changed by what a test names. */
import { DEFAULT_MAX_QUEUE_SIZE, DEFAULT_QUEUE_TIMEOUT_US, type BatchPolicy, type LevelPolicy } from '../policy.js';

export const PLAIN_QUEUE: LevelPolicy = {
  timeoutAction: 'REJECT',
  defaultTimeoutUs: 0,
  allowTimeoutOverride: false,
  maxQueueSize: DEFAULT_MAX_QUEUE_SIZE,
};

export function policy(changes: Partial<BatchPolicy> = {}): BatchPolicy {
  return {
    batching: true,
    maxRows: 8,
    preferredRows: [],
    maxQueueDelayUs: 0,
    objectiveUs: 0,
    preserveOrdering: false,
    levels: 1,
    defaultLevel: 1,
    defaultQueue: PLAIN_QUEUE,
    queueByLevel: new Map(),
    queueTimeoutUs: DEFAULT_QUEUE_TIMEOUT_US,
    ...changes,
  };
}

/** A small seeded generator (mulberry32): numbers in [0, 1), the same on every machine. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
