/**
 * The port between a scheduler and a worker. The worker owns instances and hosts; the scheduler decides what runs where
 * and when. Completion goes to the scheduler, results go from the worker straight to the gateway's reply channel.
 */
import type { RequestRef, ServingError, TensorSpec } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { Tensor } from '@paceline/tensor';

/** Everything a worker needs to start the instances of one model version. */
export interface LoadSpec {
  readonly model: string;
  readonly version: string;
  /** Distinguishes two loads of the same version (a reload); part of every instance name's identity. */
  readonly generation: number;
  /** Normalised configuration: `instance_group`, `parameters`, `optimization`, `backend` are read from it. */
  readonly config: ModelConfig;
  /** Absolute path of the model file, chosen by the repository, never from a client's text. */
  readonly modelPath: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /** What every instance runs, in this order, each time before it is ready; absent = nothing. */
  readonly warmup?: readonly WarmupSample[];
  /**
   * The partition whose stream takes its requests, as placement decided; part of every announcement, so that the owner of
   * that partition knows the load for its own. Absent in the embedded server alone.
   */
  readonly partition?: number;
}

/** One warmup sample: a batch as clients would make it. */
export interface WarmupSample {
  /** As written in the configuration. */
  readonly name: string;
  /** How often an instance runs it, at least 1. */
  readonly count: number;
  /** Rows of the tensors; 1 for a model that does not batch. */
  readonly rows: number;
  /** Every required input, shapes as clients send them. Never changed by the worker. */
  readonly inputs: readonly Tensor[];
}

export interface LoadReport {
  /** Names of the instances that are ready, Triton's form `<group>_<n>`. */
  readonly instances: readonly string[];
  /** Device of each of `instances`, `cpu` or `gpu:0`; absent = all of them run on the processor. */
  readonly devices?: readonly string[];
  /** Accepted hints that are not used, one sentence each. */
  readonly warnings: readonly string[];
  readonly durationMs: number;
  /** Only where samples were given: how many there are, their runs over all instances, and the slowest instance's time for them. */
  readonly warmup?: { readonly samples: number; readonly runs: number; readonly durationMs: number };
}

/** One request inside a batch. Tensors are in the order of `Batch.inputNames`. */
export interface BatchMember {
  readonly ref: RequestRef;
  readonly rows: number;
  readonly inputs: readonly Tensor[];
  /** Model outputs this member wants, in its order. */
  readonly outputs: readonly string[];
  /** Time it spent queued, for the timings in its reply. */
  readonly queueNs: number;
  /** As in the envelope. */
  readonly attempt?: number;
  /** As in the envelope: the tensors' bytes are still with the gateway. */
  readonly heldBytes?: number;
  /** W3C `traceparent` of the span that dispatched it; absent = not traced. */
  readonly traceParent?: string;
}

export interface Batch {
  /** Unique within the scheduler process. */
  readonly id: number;
  readonly model: string;
  readonly version: string;
  readonly generation: number;
  readonly instance: string;
  /** Sum of the members' rows; for a model that does not batch there is one member. */
  readonly rows: number;
  readonly members: readonly BatchMember[];
  /**
   * Its requests are suspected of taking instances down: it runs in a host that serves nothing else, whatever `instance`
   * says (the completion repeats it). Any number may be sent; they run one after the other.
   */
  readonly quarantine?: boolean;
}

/**
 * How a batch ended.
 * - `ok`: each member has been answered through the reply channel by the worker.
 * - `failed`: the model threw; nobody was answered. The lane isolates the members or answers with `error`.
 * - `lost`: the instance died or was killed while the batch was there; nobody was answered. `started` says whether
 *   execution had begun (only then does the attempt count).
 * - `refused`: the worker does not know the instance (any more); nobody was answered, nothing ran.
 */
export interface BatchCompletion {
  readonly batchId: number;
  readonly instance: string;
  readonly outcome: 'ok' | 'failed' | 'lost' | 'refused';
  readonly started: boolean;
  readonly error: ServingError | undefined;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

/** An instance came up or went away. `down` precedes or follows the completions (`lost`) of what it held. */
export interface InstanceEvent {
  readonly model: string;
  readonly version: string;
  readonly generation: number;
  readonly instance: string;
  readonly state: 'ready' | 'down';
  readonly reason: string;
}

export interface WorkerListener {
  onInstance(event: InstanceEvent): void;
  onCompletion(completion: BatchCompletion): void;
}

export interface WorkerLink {
  /** Resolves when every instance is ready; on failure nothing of this load is left behind. @throws ServingError */
  load(spec: LoadSpec): Promise<LoadReport>;
  /** Stops the instances of that generation. The scheduler has drained the lane before. Never throws. */
  unload(model: string, version: string, generation: number): Promise<void>;
  /** At most two batches per instance are with the worker: one running, one staged. Never throws; see `refused`. */
  execute(batch: Batch): void;
  setListener(listener: WorkerListener): void;
}
