/**
 * Chooses the versions of a model to serve from those that are present. An absent policy means the latest one; an
 * explicit `latest { }` keeps its zero and chooses none, as in Triton.
 */
import type { ModelVersionPolicy } from '@paceline/protocol/model-config';

export interface VersionSelection {
  /** Chosen versions, ascending. */
  readonly selected: readonly string[];
  /** Versions that a `specific` policy names and that have no folder. */
  readonly absent: readonly string[];
}

/** @param present version folder names: decimal, no leading zeros. They may exceed 2^53. */
export function selectVersions(policy: ModelVersionPolicy | undefined, present: readonly string[]): VersionSelection {
  const ascending = [...present].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
  const choice = policy?.policyChoice;
  switch (choice?.case) {
    case undefined:
      return { selected: ascending.slice(-1), absent: [] };
    case 'latest': {
      const count = choice.value.numVersions;
      return { selected: count === 0 ? [] : ascending.slice(-count), absent: [] };
    }
    case 'all':
      return { selected: ascending, absent: [] };
    case 'specific': {
      const wanted = new Set(choice.value.versions.map(String));
      return {
        selected: ascending.filter((version) => wanted.has(version)),
        absent: [...wanted].filter((version) => !present.includes(version)),
      };
    }
  }
}
