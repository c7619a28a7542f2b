/** The model catalog: answers from the records which version takes a request. Texts are Triton's. */
import { ServingError, type ModelCatalog, type ServedModel } from '@paceline/protocol';
import { UNLOADED, type ModelRecord, type ModelRecords } from './model-records.js';

/** Versions are folder names: positive decimal numbers of at most 19 digits. */
const VERSION = /^\d{1,19}$/;

export class ModelDirectory implements ModelCatalog {
  constructor(private readonly records: ModelRecords) {}

  resolve(name: string, version: string): ServedModel {
    const latest = version === '';
    if (!latest && !VERSION.test(version)) throw malformedVersion(version);
    const record = this.records.find(name);
    if (record === undefined || record.versions.size === 0) {
      throw new ServingError('NOT_FOUND', `Request for unknown model: '${name}' is not found`, { reason: 'unknown_model' });
    }
    if (latest) {
      if (record.latest !== undefined) return record.latest.served;
      throw new ServingError('NOT_FOUND', `Request for unknown model: '${name}' has no available versions`, {
        reason: 'no_available_version',
      });
    }
    const found = record.versions.get(version);
    if (found === undefined) {
      throw new ServingError('NOT_FOUND', `Request for unknown model: '${name}' version ${version} is not found`, {
        reason: 'unknown_version',
      });
    }
    if (found.serving !== undefined) return found.serving.served;
    throw new ServingError('UNAVAILABLE', `Request for unknown model: '${name}' version ${version} is not at ready state`, {
      reason: 'version_not_ready',
    });
  }

  readyVersions(name: string): readonly string[] {
    return this.records.serving(name).map(({ served }) => served.version);
  }

  isHealthy({ name, version }: ServedModel): boolean {
    const serving = this.records.find(name)?.versions.get(version)?.serving;
    return serving !== undefined && serving.instances.size > 0;
  }

  served(): readonly ServedModel[] {
    return [...this.records.all()].flatMap(({ name }) => this.records.serving(name).map(({ served }) => served));
  }

  /**
   * Every version that takes requests has an instance that is up, and every model that the server was started for takes
   * requests, unless it was unloaded on request. Other models do not count before they have come up: a load request must
   * not make the server unready, neither while it runs nor when it fails.
   */
  allReady(): boolean {
    for (const record of this.records.all()) {
      for (const { serving } of record.versions.values()) if (serving?.instances.size === 0) return false;
      if (record.required && record.latest === undefined && !wasUnloaded(record)) return false;
    }
    return true;
  }
}

function malformedVersion(version: string): ServingError {
  const text = /^-\d+$/.test(version)
    ? `invalid model version specified '${version}' , version should be an integral value > 0`
    : `failed to get model version from specified version string '${version}' (details: stol), version should be an integral value > 0`;
  return new ServingError('INVALID_ARGUMENT', text, { reason: 'malformed_version' });
}

function wasUnloaded({ failure, versions }: ModelRecord): boolean {
  return failure === '' && [...versions.values()].every(({ state, reason }) => state === 'UNLOADING' || reason === UNLOADED);
}
