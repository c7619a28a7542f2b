/** What all instances of a worker share: where they live, whom they tell, and how long things may take. Times in microseconds. */
import type { Clock } from '@paceline/clock';
import type { ReplyChannel } from '@paceline/streams';
import type { Logger, Tracing } from '@paceline/telemetry';
import type { BatchCompletion, InstanceEvent } from '@paceline/worker-rpc';
import type { HostFleet } from '../hosts/host-fleet.js';
import type { CopyCounter } from '../infer/copy-counter.js';
import type { ExecuteLimits } from '../supervision/execute-limit.js';
import type { WorkerObserver } from '../supervision/observer.js';

export interface InstanceContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly fleet: HostFleet;
  readonly replies: ReplyChannel;
  readonly limits: ExecuteLimits;
  readonly loadLimitUs: number;
  /** The same where others wait meanwhile. */
  readonly pooledLoadLimitUs: number;
  /** A pooled model whose runs take longer gets a host of its own. */
  readonly slowRunUs: number;
  /** An execute must have begun after this long, plus what its bytes take to arrive. */
  readonly beginLimitUs: number;
  readonly copies: CopyCounter;
  readonly observer: WorkerObserver | undefined;
  /** Where spans go; undefined = there are none. */
  readonly tracing: Tracing | undefined;
  onInstance(event: InstanceEvent): void;
  onCompletion(completion: BatchCompletion): void;
}

/** What a busy machine moves through a socket at the least: 100 MB a second. */
const BYTES_PER_US = 100;

/** How long a batch of `bytes` may take until it begins to execute, microseconds. */
export function beginLimitUs(context: InstanceContext, bytes: number): number {
  return context.beginLimitUs + bytes / BYTES_PER_US;
}
