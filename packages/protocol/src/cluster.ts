/**
 * The words of a cluster: who is in it, who owns which partition, what is routed where, and what gateways and schedulers
 * tell each other over the control link. Nothing here is durable.
 */
import type { ServingError } from './error.js';
import type { LoadParameter, ModelIndexEntry, ServedModel } from './model.js';

/**
 * The right to decide for a partition (or for placement). Of two epochs the one with the higher number holds; of two with
 * the same number and different owners neither is believed, and who meets such a pair acquires again above it.
 */
export interface Epoch {
  readonly number: number;
  /** Random id of the scheduler process that acquired it, 16 hex digits. */
  readonly owner: string;
}

/** True where `offered` may act beside what is already `known`: it is higher, or it is the same. */
export function isCurrentEpoch(offered: Epoch, known: Epoch | undefined): boolean {
  if (!known || offered.number > known.number) return true;
  return offered.number === known.number && offered.owner === known.owner;
}

export type MemberRole = 'gateway' | 'scheduler' | 'worker';

/** Settings that all processes of a cluster must have alike: one that has others would harm them, so it may not join. */
export interface CommonSettings {
  readonly partitions: number;
  /** Made from the cluster secret so that nobody can find the secret in it; '' = there is no secret. */
  readonly secretMark: string;
}

/** One live process, as it announces itself with each heartbeat. */
export interface Member {
  readonly role: MemberRole;
  /** Random, fresh at every start: 16 hex digits. For a gateway its incarnation, as in a {@link RequestRef}. */
  readonly id: string;
  /** Where others reach it, `host:port`: a gateway's link port, a worker's gRPC port; '' for a scheduler, which is dialled by nobody. */
  readonly address: string;
  /** It finishes what it has and takes nothing new. */
  readonly draining: boolean;
  readonly common?: CommonSettings;
}

/** What a worker can execute on. Ids are unique within the worker: `cpu`, `gpu:0`. */
export interface Device {
  readonly id: string;
  readonly kind: 'cpu' | 'gpu';
  readonly memoryBytes: number;
}

/** A model version as gateways route it. */
export interface RoutedModel {
  readonly model: ServedModel;
  /** Distinguishes two loads of the same version. */
  readonly generation: number;
  /** The partition whose stream takes its requests. */
  readonly partition: number;
  /** At least one instance is up. */
  readonly healthy: boolean;
}

/** All that a gateway needs to know of models; published whole by the placement owner whenever it changes. */
export interface Routing {
  /** Of the placement lease. A gateway ignores a routing whose epoch is not current. */
  readonly epoch: Epoch;
  /** Grows by one with each publication under an epoch. */
  readonly generation: number;
  readonly models: readonly RoutedModel[];
  /** The repository index, ready or not. */
  readonly index: readonly ModelIndexEntry[];
  /** Whether the loads of the start-up have ended, well or not. */
  readonly started: boolean;
  /** Whether each version that ought to be ready is. */
  readonly allReady: boolean;
}

/** What a lane says about itself, some times a second while it is not idle. */
export interface LanePressure {
  readonly model: string;
  readonly version: string;
  /** Requests that wait for execution, and how many may; Infinity = no bound. */
  readonly queued: number;
  readonly maxQueued: number;
  /** What a request that comes now will wait, microseconds. */
  readonly expectedWaitUs: number;
}

/** How often, and nanoseconds in all. */
export interface CountedTime {
  readonly count: number;
  readonly ns: number;
}

/** What a lane has learned of its model's batches, and its requests by how they fared against a latency objective. */
export interface LearnedBatching {
  /** Of the last runs of each size, ascending by size. */
  readonly sizes: readonly {
    readonly batchSize: number;
    readonly p50Us: number;
    readonly worstUs: number;
    readonly rowsPerSecond: number;
  }[];
  /** Rows beyond which the rate was not seen to grow; undefined while that is unknown. */
  readonly peakRows: number | undefined;
  /** undefined = the model has no objective. */
  readonly objective:
    { readonly objectiveMs: number; readonly attained: number; readonly missed: number; readonly shed: number } | undefined;
}

/** Counters of one model version as one process keeps them, since that process started. What it does not count is 0. */
export interface VersionCounters {
  readonly model: string;
  readonly version: string;
  /** Requests answered with a result, and those that were taken in and answered otherwise. Gateways count them. */
  readonly success: CountedTime;
  readonly fail: CountedTime;
  /** Requests, by their time in the queue and in each stage of their batch. Schedulers count these and what follows. */
  readonly queue: CountedTime;
  readonly computeInput: CountedTime;
  readonly computeInfer: CountedTime;
  readonly computeOutput: CountedTime;
  /** Rows and batches that ran. */
  readonly inferenceCount: number;
  readonly executionCount: number;
  /** Milliseconds since the epoch; 0 = never. */
  readonly lastInferenceMs: number;
  readonly batchSizes: readonly {
    readonly batchSize: number;
    readonly computeInput: CountedTime;
    readonly computeInfer: CountedTime;
    readonly computeOutput: CountedTime;
  }[];
  /** Resident memory of its instances at all workers, bytes, as a scheduler has heard; absent = nothing is known here. */
  readonly memoryBytes?: number;
  /** Absent = its lane is not, and was not, here. */
  readonly batching?: LearnedBatching;
}

/** One attempt of one of a gateway's requests. */
export interface RequestAttempt {
  readonly number: number;
  /** As in the envelope, from 1. */
  readonly attempt: number;
}

/** Control link, scheduler to gateway. Refusals travel beside these, as reply frames. */
export type SchedulerMessage =
  /** "I own that partition": said to each gateway on connecting and whenever it is acquired. */
  | { readonly kind: 'owns'; readonly partition: number; readonly epoch: Epoch }
  /** "I gave it up": somebody else will say `owns` soon. */
  | { readonly kind: 'released'; readonly partition: number; readonly epoch: Epoch }
  | { readonly kind: 'pressure'; readonly lanes: readonly LanePressure[] }
  | { readonly kind: 'routing'; readonly routing: Routing }
  /** What has changed since the last one, at most each second. `process`: whose counters, its own or a gateway's, passed on. */
  | { readonly kind: 'statistics'; readonly process: string; readonly versions: readonly VersionCounters[] }
  | { readonly kind: 'control-progress'; readonly id: number; readonly text: string }
  | { readonly kind: 'control-result'; readonly id: number; readonly error: ServingError | undefined }
  /** These were answered by a worker that has died since: who still waits for an answer will not get it. */
  | { readonly kind: 'lost'; readonly requests: readonly RequestAttempt[] };

/** Control link, gateway to scheduler. */
export type GatewayMessage =
  /** The client left or its deadline passed. No reply follows. */
  | { readonly kind: 'cancel'; readonly number: number; readonly model: string; readonly version: string }
  /**
   * The answer to each routing: requests are routed by that one from now on, and by no older one. To the publisher of an
   * older routing it names the one that holds, so that the publisher gives way or acquires above it.
   */
  | { readonly kind: 'routed'; readonly epoch: Epoch; readonly generation: number }
  /**
   * The answer to an `owns` that is older than what the gateway goes by: this is what it has to be above. Where everybody
   * but the gateways was lost, nobody else knows.
   */
  | { readonly kind: 'overtaken'; readonly partition: number; readonly epoch: Epoch }
  /** To the placement owner, which passes it on to every other gateway: what has changed since the last one. */
  | { readonly kind: 'statistics'; readonly versions: readonly VersionCounters[] }
  /** To the placement owner: model control. Answered by progress and one result; sent again after a change of owner. */
  | {
      readonly kind: 'control';
      readonly id: number;
      readonly operation: 'load' | 'unload';
      readonly model: string;
      readonly parameters: Readonly<Record<string, LoadParameter>>;
      readonly unloadDependents: boolean;
    };
