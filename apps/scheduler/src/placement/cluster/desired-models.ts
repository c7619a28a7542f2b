/**
 * What was loaded and unloaded by request, kept in the shared store and in memory. Invariants: a request that was granted
 * is not forgotten while the store or one owner lives; a store that cannot be written to holds up no request.
 */
import type { DesiredModel, DesiredState } from '@paceline/cluster-state';
import { toServingError, type ServingError } from '@paceline/protocol';

export class DesiredModels {
  /** By model: what this process has written or read. */
  readonly #known = new Map<string, DesiredModel>();
  readonly #unwritten = new Set<string>();

  constructor(
    private readonly store: DesiredState,
    private readonly onFailure: (error: ServingError) => void,
  ) {}

  /**
   * A store that has lost its data is given back what this process knows.
   * @returns `fresh` where neither knows anything
   * @throws what the store throws
   */
  async read(): Promise<{ readonly fresh: boolean; readonly models: readonly DesiredModel[] }> {
    const { fresh, models } = await this.store.read();
    if (fresh) for (const model of this.#known.keys()) this.#unwritten.add(model);
    // Another owner may have written since; what could not be written by this one is the last word where it is.
    for (const model of models) if (!this.#unwritten.has(model.model)) this.#known.set(model.model, model);
    await this.flush();
    return { fresh: this.#known.size === 0, models: [...this.#known.values()] };
  }

  /** Never rejects: what cannot be written now is written by a later {@link flush}. */
  async record(model: DesiredModel): Promise<void> {
    this.#known.set(model.model, model);
    this.#unwritten.add(model.model);
    await this.flush();
  }

  /** Writes what has not been written. Never rejects. */
  async flush(): Promise<void> {
    for (const name of [...this.#unwritten]) {
      const model = this.#known.get(name);
      if (model === undefined) continue;
      try {
        await this.store.write(model);
      } catch (thrown) {
        this.onFailure(toServingError(thrown));
        return;
      }
      if (this.#known.get(name) === model) this.#unwritten.delete(name);
    }
  }

  /** Another process may have had the last word: what this one knows is worth nothing any more. */
  forget(): void {
    this.#known.clear();
    this.#unwritten.clear();
  }
}
