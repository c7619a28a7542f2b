/**
 * What is known of every model: per version its state, why, and what serves it. Pure book-keeping without I/O; the
 * model manager writes it, the catalog and the index read it.
 */
import type { ModelIndexEntry, ModelState, ServedModel } from '@paceline/protocol';
import type { HeldFiles } from './held-files.js';

/** One load of a version that takes requests. */
export interface ServingVersion {
  readonly served: ServedModel;
  readonly generation: number;
  readonly fingerprint: string;
  /** Instances that are up now; empty while all of them are being replaced. */
  readonly instances: Set<string>;
  /** What it was loaded from; given back when its instances are gone. */
  readonly files: HeldFiles;
}

export interface VersionRecord {
  readonly version: string;
  state: ModelState;
  reason: string;
  /** Set while requests are routed to it, also during a reload; changed by {@link ModelRecords.setServing} alone. */
  serving: ServingVersion | undefined;
}

export interface ModelRecord {
  readonly name: string;
  /** Ascending by number. */
  readonly versions: Map<string, VersionRecord>;
  /** The highest version that takes requests: every request without a version asks for it. */
  latest: ServingVersion | undefined;
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
      record = { name, versions: new Map(), latest: undefined, failure: '', required: false };
      this.#models.set(name, record);
    }
    return record;
  }

  version(name: string, version: string): VersionRecord {
    const { versions } = this.of(name);
    let record = versions.get(version);
    if (record === undefined) {
      record = { version, state: 'UNKNOWN', reason: '', serving: undefined };
      const ascending = [...versions.values(), record].sort((a, b) => byNumber(a.version, b.version));
      versions.clear();
      for (const each of ascending) versions.set(each.version, each);
    }
    return record;
  }

  all(): IterableIterator<ModelRecord> {
    return this.#models.values();
  }

  /** Routes the version's requests to `serving`, or to nobody. */
  setServing(name: string, version: string, serving: ServingVersion | undefined): void {
    this.version(name, version).serving = serving;
    this.of(name).latest = this.serving(name).at(-1);
  }

  /** Versions of `name` that take requests, ascending. */
  serving(name: string): ServingVersion[] {
    const versions = [...(this.#models.get(name)?.versions.values() ?? [])];
    return versions.flatMap(({ serving }) => (serving === undefined ? [] : [serving]));
  }

  /** The repository index: every name of `repository` and of the records, sorted. */
  index(repository: readonly string[], readyOnly: boolean): ModelIndexEntry[] {
    const present = new Set(repository);
    const names = [...new Set([...repository, ...this.#models.keys()])].sort();
    return names.flatMap((name) => this.#indexOf(name, present.has(name), readyOnly));
  }

  #indexOf(name: string, present: boolean, readyOnly: boolean): ModelIndexEntry[] {
    const record = this.#models.get(name);
    const entries: ModelIndexEntry[] = [...(record?.versions.values() ?? [])].map(({ version, state, reason }) =>
      reason === '' ? { name, version, state } : { name, version, state, reason },
    );
    if (readyOnly) return entries.filter((entry) => entry.state === 'READY');
    const failure = record?.failure ?? '';
    // What still serves after a failed reload speaks for itself.
    if (failure !== '' && this.serving(name).length === 0) entries.push({ name, state: 'UNAVAILABLE', reason: failure });
    if (entries.length === 0 && present) return [{ name }];
    return entries;
  }
}
