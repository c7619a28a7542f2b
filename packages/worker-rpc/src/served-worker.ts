/**
 * The port at the other end of {@link RemoteWorker}: what a worker process does for the schedulers that are connected to
 * it. Adapters turn a connection into a {@link SchedulerSession} and calls of {@link ServedWorker}; they decide nothing.
 */
import type { Epoch } from '@paceline/protocol';
import type { Claimed, FencedBatch, ModelAnnouncement, WorkerHello } from './cluster-worker.js';
import type { BatchCompletion, InstanceEvent, LoadReport, LoadSpec } from './worker-link.js';

/** Reason of a `refused` batch whose epoch is not current. Whoever sent it has to claim again, above what the claim says. */
export const STALE_EPOCH = 'stale_epoch';
/**
 * Reason of a `refused` batch that was accepted and did not end well after another owner had claimed its partition: its
 * requests have been handed back to their gateways. Whoever sent it frees the place and forgets it.
 */
export const SUPERSEDED = 'superseded';
/** Reason of a `refused` batch that came to a worker which is going. */
export const WORKER_DRAINING = 'worker_draining';

/** One connected scheduler, as the worker sees it. What is told after it has gone is dropped. */
export interface SchedulerSession {
  /** Random id of the scheduler process, 16 hex digits. */
  readonly scheduler: string;
  onModel(model: ModelAnnouncement): void;
  onModelGone(model: string, version: string, generation: number): void;
  onInstance(event: InstanceEvent): void;
  onStarted(batchId: number): void;
  onCompletion(completion: BatchCompletion): void;
  onDraining(): void;
}

export interface ServedWorker {
  /** A scheduler is there. It is told what this returns before anything else. */
  connect(session: SchedulerSession): WorkerHello;
  disconnect(session: SchedulerSession): void;
  /** See {@link RemoteWorker.load}. @throws ServingError */
  load(session: SchedulerSession, spec: LoadSpec, fingerprint: string): Promise<LoadReport>;
  /** @throws ServingError NOT_FOUND (`unknown_load`) */
  activate(model: string, version: string, generation: number): void;
  retire(model: string, version: string, generation: number): Promise<void>;
  release(model: string, version: string, generation: number): void;
  claim(partition: number, epoch: Epoch): Claimed;
  execute(session: SchedulerSession, fenced: FencedBatch): void;
}
