/** The model catalog: answers from the records which version takes a request. Texts are Triton's. */
import { ServingError, type ModelCatalog, type ServedModel } from '@paceline/protocol';
import { UNLOADED, type ModelRecords } from './model-records.js';

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
      const newest = this.records.serving(name).at(-1);
      if (newest !== undefined) return newest.served;
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
   * Every version is ready with at least one instance up; those taken out of service on request do not count. A model
   * that could not even be read counts if it was wanted from the start: a bad load request must not make the server unready.
   */
  allReady(): boolean {
    for (const { name, versions, failure, required } of this.records.all()) {
      if (failure !== '' && required && this.records.serving(name).length === 0) return false;
      for (const { state, reason, serving } of versions.values()) {
        if (state === 'UNAVAILABLE' && reason === UNLOADED) continue;
        if (state !== 'READY' || serving === undefined || serving.instances.size === 0) return false;
      }
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
