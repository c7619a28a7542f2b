/** What the worker of the embedded server is given: its ports, and the limits and sizes it works by, each with its default. */
import type { Clock } from '@paceline/clock';
import type { ReplyChannel } from '@paceline/streams';
import type { Logger, Tracing } from '@paceline/telemetry';
import type { GpuInventory } from './gpu/gpus.js';
import type { WorkerObserver } from './supervision/observer.js';

export interface LocalWorkerOptions {
  readonly replies: ReplyChannel;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** GPUs that models may run on; default none. See `detectGpus`. */
  readonly gpus?: GpuInventory;
  /** Instances of a model whose configuration leaves kind and count to the worker, on the processor; default 2, or 1 on one core. */
  readonly cpuInstanceCount?: number;
  /** Longest run before a host counts as hung; default 30 s. */
  readonly executeLimitMs?: number;
  /** Longest first run of an instance; default 120 s. */
  readonly firstRunLimitMs?: number;
  /** A limit learned from past runs never goes below this; default 1 s. */
  readonly learnedLimitFloorMs?: number;
  /** Longest load of one instance; default 300 s. */
  readonly loadLimitMs?: number;
  /** An idle host is pinged this often (default 300 ms) and killed when it does not answer within `pingLimitMs` (1.4 s). */
  readonly pingIntervalMs?: number;
  readonly pingLimitMs?: number;
  /** Small models get hosts of their own up to this many hosts (default 4), then share `poolHosts` (default: one per core). */
  readonly dedicatedHosts?: number;
  readonly poolHosts?: number;
  /** Model files up to this size may share a host; default 8 MiB. */
  readonly smallModelBytes?: number;
  /** Up to this size they share hosts with their like only, so that no longer load holds them up; default 1 MiB. */
  readonly tinyModelBytes?: number;
  /** A model in the pool whose runs take longer moves to a host of its own; default 100 ms. */
  readonly slowRunMs?: number;
  /** How often the memory of hosts is looked at; default 3 s. */
  readonly memoryCheckMs?: number;
  /** A host counts as settled this long after a change of what it holds (default 30 s); what it has then is what it needs. */
  readonly memorySettleMs?: number;
  /** A host is replaced when it has twice what it needs and this much on top; default 256 MiB. */
  readonly memoryGrowthBytes?: number;
  /** Longest load into a host that others are in; default 5 s. */
  readonly pooledLoadLimitMs?: number;
  readonly observer?: WorkerObserver;
  /** Where spans go; without it there are none. */
  readonly tracing?: Tracing | undefined;
  /** Memory file system for large tensors; "" = none; default /dev/shm. */
  readonly shmDirectory?: string;
  /** How hosts call ONNX Runtime; default `binding`. */
  readonly runtimeApi?: 'binding' | 'session';
  /** Compiled entry of the host. */
  readonly hostEntry?: string;
}
