/**
 * The port between a scheduler and a worker that is another process. Every scheduler is connected to every worker. The
 * placement owner loads, activates and retires models there; the owner of a model's partition, and nobody else, sends it
 * batches. A worker announces to all schedulers what is active, so a lane is rebuilt from the workers by whoever owns it.
 *
 * Life of a load: `load` brings the instances up, known to the caller alone; `activate` announces it to all; `retire`
 * announces that its lane must end; when the lane has said `release` (or the limit is over) the instances stop.
 */
import type { Device, Epoch, RequestRef } from '@paceline/protocol';
import type { Batch, BatchCompletion, InstanceEvent, LoadReport, LoadSpec } from './worker-link.js';

/** One load at a worker, as it is announced. `spec` comes without its warmup samples. */
export interface ModelAnnouncement {
  readonly spec: LoadSpec;
  /** Equal for equal configuration and files: a new placement owner adopts what has it. */
  readonly fingerprint: string;
  /** Local names, passive instances left out. */
  readonly instances: readonly string[];
  /** Device of each of `instances`, `cpu` or `gpu:0`; absent = all of them run on the processor. */
  readonly devices?: readonly string[];
  /** Those of `instances` that are up now. */
  readonly ready: readonly string[];
  readonly state: 'loaded' | 'active' | 'retiring';
  /** Resident memory of its instances as last seen, bytes; 0 = not known. */
  readonly memoryBytes: number;
}

/** What a worker says when a scheduler has connected, before anything else. */
export interface WorkerHello {
  readonly worker: string;
  readonly devices: readonly Device[];
  readonly models: readonly ModelAnnouncement[];
  readonly draining: boolean;
  /** The highest epochs it has seen, per partition. */
  readonly epochs: readonly { readonly partition: number; readonly epoch: Epoch }[];
}

/** A batch with the right to send it. `batch.instance` is the worker's local name. */
export interface FencedBatch {
  readonly partition: number;
  readonly epoch: Epoch;
  readonly batch: Batch;
}

/** A request that is with a worker. */
export interface RunningRequest {
  readonly ref: RequestRef;
  /** As in the envelope, from 1. */
  readonly attempt: number;
}

export type Claimed =
  /** Requests of the partition that are with the worker, from owners before: they will be answered and must not be run again. */
  | { readonly ok: true; readonly running: readonly RunningRequest[] }
  /** The worker knows a higher epoch, or the same number from another owner: acquire again above it. */
  | { readonly ok: false; readonly highest: Epoch };

export interface RemoteWorkerListener {
  /** Connected (again). Whatever was with the worker before is lost to this scheduler. */
  onUp(hello: WorkerHello): void;
  /** Disconnected or silent. Completions of what is with it will not come. */
  onDown(worker: string, reason: string): void;
  /** A load is new or has changed its state. */
  onModel(worker: string, model: ModelAnnouncement): void;
  /** The instances of a load have stopped. */
  onModelGone(worker: string, model: string, version: string, generation: number): void;
  onInstance(worker: string, event: InstanceEvent): void;
  /** The instance began with the batch: from now on a loss counts as a start. */
  onStarted(worker: string, batchId: number): void;
  /** A batch whose epoch was too low comes back `refused` with reason `stale_epoch`. */
  onCompletion(worker: string, completion: BatchCompletion): void;
  onDraining(worker: string): void;
}

/** Scheduler side: one per worker, reconnects by itself until closed. */
export interface RemoteWorker {
  readonly worker: string;
  readonly connected: boolean;
  /** See {@link WorkerLink.load}; @throws ServingError UNAVAILABLE (`worker_lost`) when the worker goes away meanwhile */
  load(spec: LoadSpec, fingerprint: string): Promise<LoadReport>;
  /** Resolves when it has been announced to every scheduler that is connected. */
  activate(model: string, version: string, generation: number): Promise<void>;
  /** Resolves when its instances have stopped. Never rejects: a worker that is gone has none. */
  retire(model: string, version: string, generation: number): Promise<void>;
  /** The lane of a retiring load holds nothing any more. */
  release(model: string, version: string, generation: number): void;
  claim(partition: number, epoch: Epoch): Promise<Claimed>;
  execute(batch: FencedBatch): void;
  close(): Promise<void>;
}

/** Dials a worker. The first `onUp` comes when it has answered. */
export type ConnectWorker = (worker: string, address: string, listener: RemoteWorkerListener) => RemoteWorker;
