/** Finds, among what workers have, a load that is equal to one that is asked for. */
import type { LoadSpec, ModelAnnouncement } from '@paceline/worker-rpc';
import type { WorkerFleet } from './worker-fleet.js';

/** An active replica counts for more than any number of those that are merely loaded. */
const ACTIVE = 1000;

/**
 * @param isFree whether nobody has other plans with that load
 * @returns the equal load that most workers serve, the newest of several; undefined where there is none
 */
export function findAdoptable(
  { model, version }: LoadSpec,
  fingerprint: string,
  fleet: WorkerFleet,
  isFree: (worker: string, load: ModelAnnouncement) => boolean,
): LoadSpec | undefined {
  const votes = new Map<number, { readonly spec: LoadSpec; votes: number }>();
  for (const { id, draining, loads } of fleet.workers.values()) {
    for (const load of loads.values()) {
      const { spec, state } = load;
      const equal = spec.model === model && spec.version === version && load.fingerprint === fingerprint;
      if (!equal || draining || state === 'retiring' || !isFree(id, load)) continue;
      const entry = votes.get(spec.generation) ?? { spec, votes: 0 };
      entry.votes += state === 'active' ? ACTIVE : 1;
      votes.set(spec.generation, entry);
    }
  }
  const [best] = [...votes.values()].sort((a, b) => b.votes - a.votes || b.spec.generation - a.spec.generation);
  return best?.spec;
}
