/** What a load on several workers reports: the instances of all of them, under names that no two share. */
import type { LoadReport, ModelAnnouncement } from '@paceline/worker-rpc';
import { instanceName } from './worker-fleet.js';

/**
 * @param reports of the workers that loaded it now
 * @param holders all that have it
 * @returns instances that are up, sorted by worker; of warmups the sum of the runs and the longest time
 */
export function reportOfAll(
  reports: Iterable<LoadReport>,
  holders: readonly { readonly worker: string; readonly load: ModelAnnouncement }[],
): Omit<LoadReport, 'durationMs'> {
  const all = [...reports];
  const sorted = [...holders].sort((a, b) => (a.worker < b.worker ? -1 : 1));
  const warmups = all.flatMap(({ warmup }) => (warmup === undefined ? [] : [warmup]));
  const [slowest] = warmups.toSorted((a, b) => b.durationMs - a.durationMs);
  return {
    instances: sorted.flatMap(({ worker, load }) => load.ready.map((local) => instanceName(worker, local))),
    warnings: [...new Set(all.flatMap(({ warnings }) => warnings))],
    ...(slowest === undefined ? {} : { warmup: { ...slowest, runs: warmups.reduce((sum, { runs }) => sum + runs, 0) } }),
  };
}
