/** The port between one connection and the data plane that accepted it. */
import type { Socket } from 'node:net';
import type { ServingError } from '@paceline/protocol';
import type { Grant } from '../access/grant.js';
import type { ByteBudget } from '../infer/byte-budget.js';
import type { BodyPool } from './body-pool.js';
import type { DataPlaneLimits } from './data-plane-limits.js';
import type { InferRoute } from './infer-route.js';
import type { InferHead } from './request-head.js';

/** What all connections of a data plane share. */
export interface ConnectionHost {
  readonly limits: DataPlaneLimits;
  readonly route: InferRoute;
  /** Seconds since the data plane started, in whole ticks. */
  readonly tick: number;
  readonly dateLine: string;
  /** True once the data plane drains: each connection ends with the reply behind which nothing more has come. */
  readonly closing: boolean;
  readonly budget: ByteBudget;
  readonly bodies: BodyPool;
  /** Lower-case names of the headers that decide about access. */
  readonly credentialNames: ReadonlySet<string>;
  /** What the caller may do, or why not; undefined = nothing is asked. Decided before the body is read. */
  admit(head: InferHead): Grant | ServingError | undefined;
  /** Takes over a socket whose next bytes are `head`. */
  handOver(socket: Socket, head: Buffer): void;
}
