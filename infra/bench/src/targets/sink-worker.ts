/** What the sink worker's process and its controller tell each other. */

export interface SinkPlan {
  readonly warmupMs: number;
  readonly measureMs: number;
}

export type SinkMessage =
  /** A scheduler has loaded the model here. */
  | { readonly type: 'ready' }
  | { readonly type: 'window-open' }
  | { readonly type: 'result'; readonly requestsPerS: number; readonly cpuShare: number }
  | { readonly type: 'error'; readonly text: string };
