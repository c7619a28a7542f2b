/** What placement tells about models as it happens, for logs and for the table at start-up. */
import type { ModelState } from '@paceline/protocol';
import type { LoadReport } from '@paceline/worker-rpc';

export interface ModelEvent {
  readonly model: string;
  /** undefined when the load failed before it came to any version. */
  readonly version: string | undefined;
  readonly state: ModelState;
  /** "" for READY. */
  readonly reason: string;
  /** READY only: what was accepted without effect, ignored or absent; one text each. */
  readonly warnings: readonly string[];
  /** READY only: instances that serve it. */
  readonly instances: readonly string[];
  /** READY only: time from reading the model to its instances being ready. */
  readonly loadMs: number;
  /** READY only, of a model with warmup samples. */
  readonly warmup?: NonNullable<LoadReport['warmup']>;
}

export type ModelEventListener = (event: ModelEvent) => void;
