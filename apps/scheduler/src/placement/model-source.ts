/**
 * The port through which the model manager learns what a model should be now. Nothing here is served yet: a source
 * only reads, judges and describes.
 */
import type { ServingError, TensorSpec } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { WarmupSample } from '@paceline/worker-rpc';

/** One version that the model's version policy selects. */
export type SourceVersion = {
  readonly version: string;
  /** Equal as long as configuration and files are: an equal version need not be loaded again. */
  readonly fingerprint: string;
} & (
  | {
      readonly ok: true;
      readonly config: ModelConfig;
      readonly modelPath: string;
      readonly inputs: readonly TensorSpec[];
      readonly outputs: readonly TensorSpec[];
      readonly labels: ReadonlyMap<string, readonly string[]>;
      readonly warmup: readonly WarmupSample[];
      /** What a user of this version should know; shown beside its state. */
      readonly remarks?: readonly string[];
    }
  | { readonly ok: false; readonly error: ServingError }
);

export interface SourceModel {
  readonly name: string;
  /** Ascending; may be empty. */
  readonly versions: readonly SourceVersion[];
  /** Fields without effect, entries of the folder that are ignored, versions asked for and absent; one text each. */
  readonly warnings: readonly string[];
  /** Given where the files are this load's own: called once nothing that was loaded from them is left. Never rejects. */
  readonly release?: () => Promise<void>;
}

/** What a load asks for, beside the name. */
export interface SourceRequest {
  /** JSON form of a configuration that replaces the model's own for this load. */
  readonly config?: string;
  /** Files by path below the model's folder, e.g. `1/model.onnx`: the model then consists of these alone. Needs `config`. */
  readonly files?: ReadonlyMap<string, Uint8Array>;
  /** A folder in which {@link files} were laid out before, as a repository of this one model: the model consists of it alone. */
  readonly root?: string;
  /** Versions that count as present; default all. */
  readonly versions?: ReadonlySet<string>;
}

/** A model as it lies there at one moment; two are compared to see what has changed. */
export interface Observation {
  /** Of everything but the versions: configuration, labels, warmup data. */
  readonly rest: string;
  /** Per version folder. */
  readonly versions: ReadonlyMap<string, string>;
  /** When the newest of its files changed last, wall-clock milliseconds. */
  readonly changedMs: number;
}

export interface ModelSource {
  /**
   * Called once, before anything is loaded.
   * @returns a text for each entry that is no model though it looks like part of one
   * @throws ServingError NOT_FOUND when a repository cannot be read
   */
  open(): Promise<readonly string[]>;
  /** Names of all models there are, sorted. Reads the top folders only. */
  names(): readonly string[];
  /**
   * @returns undefined where there is no such model
   * @throws ServingError when the model as a whole cannot be read: bad name, bad configuration, two repositories
   */
  read(name: string, request: SourceRequest): Promise<SourceModel | undefined>;
  /**
   * All models by name, by sizes and times of their files.
   * @throws ServingError NOT_FOUND when a repository cannot be read: nobody can tell then which models are gone
   */
  observe(): Promise<ReadonlyMap<string, Observation>>;
}
