/**
 * The port through which the model manager learns what a model should be now. Nothing here is served yet: a source
 * only reads, judges and describes.
 */
import type { ServingError, TensorSpec } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';

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
    }
  | { readonly ok: false; readonly error: ServingError }
);

export interface SourceModel {
  readonly name: string;
  /** Ascending; may be empty. */
  readonly versions: readonly SourceVersion[];
  /** Fields without effect, entries of the folder that are ignored, versions asked for and absent; one text each. */
  readonly warnings: readonly string[];
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
   * @param configOverride JSON form of a configuration that replaces the model's own for this load
   * @returns undefined where there is no such model
   * @throws ServingError when the model as a whole cannot be read: bad name, bad configuration, two repositories
   */
  read(name: string, configOverride: string | undefined): Promise<SourceModel | undefined>;
}
