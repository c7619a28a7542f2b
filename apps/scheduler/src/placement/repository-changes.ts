/**
 * Decides, from one look at the repositories to the next, which models are to be loaded again and which are gone. What
 * is still being written waits: a version counts once two looks in a row found it the same, and a model whose loaded
 * version is being overwritten stays as it is until that has ended. Pure: what is seen goes in, actions come out.
 */
import type { Observation } from './model-source.js';

export type PollAction =
  | {
      readonly kind: 'load';
      readonly model: string;
      /** Those that have settled; others do not count as present. */ readonly versions: ReadonlySet<string>;
    }
  | { readonly kind: 'unload'; readonly model: string };

interface Watched {
  last: Observation;
  /** What the last load was told, as text; undefined before the first. */
  asked: string | undefined;
  versions: ReadonlySet<string>;
}

export class RepositoryChanges {
  readonly #models = new Map<string, Watched>();

  /** @param seen all models there are now */
  next(seen: ReadonlyMap<string, Observation>): PollAction[] {
    const actions: PollAction[] = [];
    for (const [model, now] of seen) {
      const watched = this.#models.get(model);
      if (watched === undefined) {
        this.#models.set(model, { last: now, asked: undefined, versions: new Set() });
        continue;
      }
      const versions = settledVersions(watched, now);
      watched.last = now;
      if (versions === undefined) continue;
      const asked = JSON.stringify([now.rest, ...[...versions].map((version) => [version, now.versions.get(version)])]);
      if (asked === watched.asked) continue;
      watched.asked = asked;
      watched.versions = versions;
      actions.push({ kind: 'load', model, versions });
    }
    for (const [model, { asked }] of this.#models) {
      if (seen.has(model)) continue;
      this.#models.delete(model);
      if (asked !== undefined) actions.push({ kind: 'unload', model });
    }
    return actions;
  }
}

/** Undefined while the model as a whole has to wait. */
function settledVersions({ last, versions }: Watched, now: Observation): Set<string> | undefined {
  if (last.rest !== now.rest) return undefined;
  const settled = new Set([...now.versions].filter(([version, print]) => last.versions.get(version) === print).map(([version]) => version));
  for (const version of now.versions.keys()) if (versions.has(version) && !settled.has(version)) return undefined;
  // A new model whose only version is still being copied.
  if (settled.size === 0 && now.versions.size > 0) return undefined;
  return settled;
}
