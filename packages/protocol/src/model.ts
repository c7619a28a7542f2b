/** The words about models that a gateway reads: what is served, in which state, and the port to change it. */
import type { DataType } from '@paceline/tensor';
import type { ModelConfig } from './gen/model_config_pb.js';

export type ModelState = 'UNKNOWN' | 'READY' | 'UNAVAILABLE' | 'LOADING' | 'UNLOADING';

/** One input or output as clients see it: dims include the leading -1 where the model batches. */
export interface TensorSpec {
  readonly name: string;
  readonly datatype: DataType;
  /** Dimensions on the wire; -1 = variable. */
  readonly shape: readonly number[];
  /** Inputs only: may be left out of a request. */
  readonly optional: boolean;
  /**
   * Shape that the model file takes or gives, where it is not `shape`: the same elements in another rank (`reshape`, or
   * a value of rank 0). Its k-th -1 stands for the same number as the k-th -1 of `shape`.
   */
  readonly modelShape?: readonly number[];
}

/** A model version that can take requests. Immutable: a reload makes a new object, so it may key a WeakMap. */
export interface ServedModel {
  readonly name: string;
  /** Decimal, e.g. "1". */
  readonly version: string;
  /** Normalised: every rule of auto-completion applied. */
  readonly config: ModelConfig;
  /** 0 = the model does not batch. */
  readonly maxBatchSize: number;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /** Labels per output name, one per class index, where the configuration names a label file. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/** What a gateway needs to know to route a request. Reading it costs no I/O. */
export interface ModelCatalog {
  /**
   * The version that answers for `name`: "" picks the highest ready one.
   * @throws ServingError INVALID_ARGUMENT unknown model or malformed version, NOT_FOUND unknown version or none
   * available, UNAVAILABLE version not ready. Texts as Triton's.
   */
  resolve(name: string, version: string): ServedModel;
  /** Ready versions of `name`, ascending; empty where the model is unknown or none is ready. */
  readyVersions(name: string): readonly string[];
  /**
   * Whether requests for that version are executed now: at least one of its instances is healthy. Without one they wait
   * for an instance to come back.
   */
  isHealthy(model: ServedModel): boolean;
  /** Every version that is ready now. */
  served(): readonly ServedModel[];
  /** Whether each version that ought to be ready is. */
  allReady(): boolean;
}

export interface ModelIndexEntry {
  readonly name: string;
  /** Absent for a model that was never loaded. */
  readonly version?: string;
  readonly state?: ModelState;
  readonly reason?: string;
}

export type LoadParameter = string | bigint | boolean | Uint8Array;

/** Model control: allowed only in explicit mode. Each promise settles when the new state is reached. */
export interface ModelControl {
  index(readyOnly: boolean): readonly ModelIndexEntry[];
  /** @throws ServingError UNAVAILABLE when the control mode forbids it, INVALID_ARGUMENT with the reason of the failure. */
  load(name: string, parameters: Readonly<Record<string, LoadParameter>>): Promise<void>;
  unload(name: string, options: { readonly unloadDependents: boolean }): Promise<void>;
}
