/** What a contract suite needs of the store under test. */
export interface StoreHarness<Port> {
  /** A view of the one store, as another process would have it. */
  connect(): Port;
  /** Resolves when so many milliseconds have passed by the clock of the store. */
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Opens an empty store. */
export type OpenStore<Port> = () => Promise<StoreHarness<Port>>;
