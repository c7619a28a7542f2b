/**
 * The port between placement and the lanes: placement says which generation of a model version serves, a lane host owns
 * the queues. Invariant: for one model version generations only grow, and `open` of a generation comes after the worker
 * has reported its instances ready and before any `drain` of it.
 */
import type { TensorSpec } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { DeviceShare } from '../batching/device-credits.js';

/** What a lane must know of the model version it queues for. */
export interface LaneSpec {
  readonly model: string;
  /** Decimal, e.g. "1". */
  readonly version: string;
  /** Grows with every load of this model; part of the identity of the instances. */
  readonly generation: number;
  /** Normalised: `dynamic_batching.preferred_batch_size` is filled, `max_batch_size` is final. */
  readonly config: ModelConfig;
  /** In the order of the configuration; shapes include the leading -1 where the model batches. */
  readonly inputs: readonly TensorSpec[];
  /** Names of the instances that are ready now, `<group>_<n>`; passive instances are not among them. */
  readonly instances: readonly string[];
  /** Instances with other names may come up later, on other workers; absent = those named are all there will be. */
  readonly instancesVary?: boolean;
  /** Where instances share devices with those of other models; absent = none does. */
  readonly deviceOf?: (instance: string) => DeviceShare | undefined;
}

export interface LaneHost {
  /**
   * Makes `spec` the generation that takes requests of its version. If the version has a lane already, what is queued
   * there goes on under the new configuration and instances, and only batches that are with the worker still belong to
   * the old generation.
   */
  open(spec: LaneSpec): void;
  /**
   * Resolves once nothing of that generation is queued or with the worker. While it is the current generation the lane
   * first stops taking requests (UNAVAILABLE, as for a model that is not ready), finishes what it has, and is then
   * removed; an older generation only waits for its batches. An unknown generation resolves at once. Never rejects.
   */
  drain(model: string, version: string, generation: number): Promise<void>;
}
