/** Tells long-lived streams that the server is closing, so that they end by themselves instead of holding it open. */
export class Shutdown {
  readonly #listeners = new Set<() => void>();
  #begun = false;

  /** Calls `end` when the server closes, at once where it already does. @returns a function that takes it back. */
  onShutdown(end: () => void): () => void {
    if (this.#begun) end();
    else this.#listeners.add(end);
    return () => this.#listeners.delete(end);
  }

  begin(): void {
    this.#begun = true;
    for (const end of this.#listeners) end();
    this.#listeners.clear();
  }
}
