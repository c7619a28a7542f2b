/**
 * What is known of every model: per version its state, why, and what serves it. Pure book-keeping without I/O; the
 * model manager writes it, the catalog and the index read it.
 */
import type { ModelIndexEntry, ModelState, ServedModel } from '@paceline/protocol';

/** One load of a version that takes requests. */
export interface ServingVersion {
  readonly served: ServedModel;
  readonly generation: number;
  readonly fingerprint: string;
  /** Instances that are up now; empty while all of them are being replaced. */
  readonly instances: Set<string>;
}

export interface VersionRecord {
  readonly version: string;
  state: ModelState;
  reason: string;
  /** Set while requests are routed to it, also during a reload. */
  serving: ServingVersion | undefined;
}

export interface ModelRecord {
  readonly name: string;
  readonly versions: Map<string, VersionRecord>;
  /** Why the last load failed before it came to any version; "" if it did not. */
  failure: string;
  /** Whether the server was started to serve it, so that it is not ready without it. */
  required: boolean;
}

/** The reason of a version that was taken out of service on request. */
export const UNLOADED = 'unloaded';

const byNumber = (a: string, b: string): number => (BigInt(a) < BigInt(b) ? -1 : 1);

export class ModelRecords {
  readonly #models = new Map<string, ModelRecord>();

  find(name: string): ModelRecord | undefined {
    return this.#models.get(name);
  }

  /** The record of that model, made on first use. */
  of(name: string): ModelRecord {
    let record = this.#models.get(name);
    if (record === undefined) {
      record = { name, versions: new Map(), failure: '', required: false };
      this.#models.set(name, record);
    }
    return record;
  }

  version(name: string, version: string): VersionRecord {
    const { versions } = this.of(name);
    let record = versions.get(version);
    if (record === undefined) {
      record = { version, state: 'UNKNOWN', reason: '', serving: undefined };
      versions.set(version, record);
    }
    return record;
  }

  all(): IterableIterator<ModelRecord> {
    return this.#models.values();
  }

  /** Versions of `name` that take requests, ascending. */
  serving(name: string): ServingVersion[] {
    const versions = [...(this.#models.get(name)?.versions.values() ?? [])];
    return versions.sort((a, b) => byNumber(a.version, b.version)).flatMap(({ serving }) => (serving === undefined ? [] : [serving]));
  }

  /** The repository index: every name of `repository` and of the records, sorted. */
  index(repository: readonly string[], readyOnly: boolean): ModelIndexEntry[] {
    const names = [...new Set([...repository, ...this.#models.keys()])].sort();
    return names.flatMap((name) => this.#indexOf(name, repository.includes(name), readyOnly));
  }

  #indexOf(name: string, present: boolean, readyOnly: boolean): ModelIndexEntry[] {
    const record = this.#models.get(name);
    const entries: ModelIndexEntry[] = [...(record?.versions.values() ?? [])]
      .sort((a, b) => byNumber(a.version, b.version))
      .map(({ version, state, reason }) => (reason === '' ? { name, version, state } : { name, version, state, reason }));
    if (readyOnly) return entries.filter((entry) => entry.state === 'READY');
    const failure = record?.failure ?? '';
    // What still serves after a failed reload speaks for itself.
    if (failure !== '' && this.serving(name).length === 0) entries.push({ name, state: 'UNAVAILABLE', reason: failure });
    if (entries.length === 0 && present) return [{ name }];
    return entries;
  }
}
