/** What a placement owner needs of the scheduler process, and how it is set. */
import type { Clock } from '@paceline/clock';
import type { DesiredState, Leases } from '@paceline/cluster-state';
import type { SchedulerLinks } from '@paceline/streams';
import type { Logger, StatisticsRegistry } from '@paceline/telemetry';
import type { LoadSpec, RemoteWorker } from '@paceline/worker-rpc';
import type { ModelEventListener } from '../model-events.js';
import type { ControlMode } from '../model-manager.js';
import type { ModelSource } from '../model-source.js';

export interface PlacementPorts {
  readonly clock: Clock;
  readonly leases: Leases;
  readonly desired: DesiredState;
  readonly source: ModelSource;
  /** To the gateways. */
  readonly links: Pick<SchedulerLinks, 'tell' | 'gateways'>;
  /** The connection to that worker, whether or not it is up; undefined = there is none. */
  readonly worker: (id: string) => RemoteWorker | undefined;
  readonly logger: Logger;
  /** Load times go here. */
  readonly statistics?: StatisticsRegistry;
  /** Told of what happens to models while this process decides. */
  readonly onModelEvent?: ModelEventListener;
  /** Memory of one instance, bytes, as far as the files tell; default: the size of the model file. */
  readonly estimate?: (spec: LoadSpec) => Promise<number>;
}

export interface PlacementOptions {
  /** Random id of this process, as in its leases. */
  readonly scheduler: string;
  readonly partitions: number;
  readonly leaseTtlMs: number;
  readonly controlMode: ControlMode;
  /** Explicit mode: what to load at start; `*` alone means every model. */
  readonly startupModels: readonly string[];
  readonly loadThreadCount?: number;
  readonly loadRetryCount?: number;
  readonly pollIntervalMs?: number;
  /** Below it the files of load requests are laid out; schedulers and workers share it. Without it such requests are refused. */
  readonly uploadDirectory?: string;
  /** How long a load by request waits for a worker to join. Default 60 s; those of the start-up wait without end. */
  readonly loadWaitMs?: number;
  /** How long a load waits for a worker that fits, where others are there. Default 5 s. */
  readonly fitWaitMs?: number;
  /** Between two beats of a member. Default 500 ms; a new owner waits for two. */
  readonly heartbeatMs?: number;
  /** How long a new owner waits for workers that are members and have not said what they have. Default 3 s. */
  readonly settleMs?: number;
}
