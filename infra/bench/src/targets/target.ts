/** Something a generator can load: a process tree that listens on ports of the loopback address. */
export interface Target {
  /** As the report calls it. */
  readonly name: string;
  /** Root of the process tree that is charged for the work. */
  readonly pid: number;
  /** Further roots inside that tree, by the name of their part, where the report shows what each part spends. */
  readonly parts?: () => ReadonlyMap<string, number>;
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Inferences and executions of a model since the start; undefined where the target does not count. */
  readonly batchCounts: (model: string) => Promise<BatchCounts | undefined>;
  readonly stop: () => Promise<void>;
}

export interface BatchCounts {
  readonly inferences: number;
  readonly executions: number;
}
