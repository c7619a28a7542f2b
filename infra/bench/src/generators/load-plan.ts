/** What the generator process is told to do and what it answers: plain data, sent as messages between processes. */
import type { HttpForm } from '../requests/http-request.js';

interface PlanBase {
  readonly model: string;
  readonly port: number;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export type LoadPlan =
  /** Each connection sends its next request when the answer has come. */
  | (PlanBase & { readonly kind: 'http-closed'; readonly form: HttpForm; readonly connections: number; readonly mayRefuse?: boolean })
  /** Requests are due at times that were fixed before the start, whatever the server does; connections are opened as needed. */
  | (PlanBase & {
      readonly kind: 'http-open';
      readonly form: HttpForm;
      readonly maxConnections: number;
      /** Mean over all send times. */
      readonly ratePerS: number;
      /** Where the send times come from; Poisson from `seed` where it is left out. */
      readonly arrivals?: 'poisson' | 'conversation-trace';
      readonly seed: number;
      /** Answers with 429, and 504 for what was given up in the queue, are counted as refused instead of failed. */
      readonly mayRefuse?: boolean;
      /** Successful answers within this time are counted as well. */
      readonly objectiveMs?: number;
    })
  | (PlanBase & { readonly kind: 'grpc-closed'; readonly connections: number; readonly inFlight: number });

export interface LatencySummary {
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface LoadResult {
  readonly answered: number;
  /** Answers that were not a success; a run with any is worthless. */
  readonly failed: number;
  readonly firstFailure: string | undefined;
  readonly elapsedMs: number;
  /** Successful answers in the measured window over its length. */
  readonly ratePerS: number;
  /** From the intended send time to the last byte of the answer. */
  readonly latency: LatencySummary;
  /** Requests that the server refused for want of room, where the plan allows it. */
  readonly refused: { readonly count: number; readonly latency: LatencySummary } | undefined;
  /** Share of all requests that were answered within the plan's objective; refused ones were not. */
  readonly withinObjective: number | undefined;
  /** How late requests were sent, open loop only; contained in the latency. */
  readonly sendLag: LatencySummary | undefined;
  /** CPU time of the generator over wall time: near 1 it is the limit itself. */
  readonly generatorCpuShare: number;
}

/** From the generator process: the window opens, the window closes (`result`), or the run failed. */
export type GeneratorMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'window-open' }
  | { readonly type: 'result'; readonly result: LoadResult }
  | { readonly type: 'error'; readonly text: string };
