/** The model catalog: answers from the records which version takes a request. */
import { unresolvedModel } from '@paceline/core';
import type { ModelCatalog, ServedModel } from '@paceline/protocol';
import { UNLOADED, type ModelRecord, type ModelRecords } from './model-records.js';

export class ModelDirectory implements ModelCatalog {
  constructor(private readonly records: ModelRecords) {}

  resolve(name: string, version: string): ServedModel {
    const record = this.records.find(name);
    const serving = version === '' ? record?.latest : record?.versions.get(version)?.serving;
    if (serving !== undefined) return serving.served;
    throw unresolvedModel(name, version, record && { any: record.versions.size > 0, asked: record.versions.has(version) });
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

function wasUnloaded({ failure, versions }: ModelRecord): boolean {
  return failure === '' && [...versions.values()].every(({ state, reason }) => state === 'UNLOADING' || reason === UNLOADED);
}
