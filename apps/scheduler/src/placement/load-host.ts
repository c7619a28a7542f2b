/**
 * The port through which models are loaded, whether that is one worker in this process or all those of a cluster. A
 * worker link is one; a cluster's tells the lanes by itself, once what was loaded is activated.
 */
import type { LoadReport, LoadSpec } from '@paceline/worker-rpc';

export interface LoadHost {
  /**
   * Resolves when the version can serve. `generation` in the report is set where an equal load was there already and
   * is used instead of a new one.
   * @param fingerprint equal for equal configuration and files
   * @throws ServingError; nothing of this load is left behind then
   */
  load(spec: LoadSpec, fingerprint: string): Promise<LoadReport & { readonly generation?: number }>;
  /** Called once every version of the load has come up, before any of them is routed. Never rejects. */
  activate?(model: string, version: string, generation: number): Promise<void>;
  /** Stops the instances of that generation, which nothing is routed to any more. Never rejects. */
  unload(model: string, version: string, generation: number): Promise<void>;
}
