/**
 * Brings one model from what serves now to what its source says: new instances first, then the routing, then the old
 * ones drain and go. A load is all or nothing: when one version fails, what it started is stopped and what served
 * before goes on. Callers keep two operations on one model from overlapping.
 */
import { basename } from 'node:path';
import type { Clock } from '@paceline/clock';
import { isPassive } from '@paceline/core';
import { ServingError, toServingError, type ErrorCode, type ServedModel } from '@paceline/protocol';
import type { StatisticsRegistry } from '@paceline/telemetry';
import type { LoadReport, LoadSpec } from '@paceline/worker-rpc';
import { DeviceCredits } from '../batching/device-credits.js';
import { sharesOf } from '../workers/shared-devices.js';
import { HeldFiles } from './held-files.js';
import type { LaneHost } from './lane-host.js';
import type { LoadHost } from './load-host.js';
import type { ModelEvent, ModelEventListener } from './model-events.js';
import { UNLOADED, type ModelRecords, type ServingVersion, type VersionRecord } from './model-records.js';
import type { SourceModel, SourceVersion } from './model-source.js';
import type { Limiter } from './operation-queue.js';

export interface LoaderPorts {
  /** A worker, or what stands for all of them. */
  readonly worker: LoadHost;
  readonly lanes: LaneHost;
  readonly clock: Clock;
  /** The number of the next load, above every one that is or was in use; default: counts from 1. */
  readonly nextGeneration?: () => number;
  /** Load times go here, and versions that are gone are removed from it. */
  readonly statistics?: StatisticsRegistry;
}

type Started = { readonly version: GoodVersion; readonly generation: number; readonly report: LoadReport; readonly loadMs: number };
type GoodVersion = SourceVersion & { readonly ok: true };
type Failed = { readonly version: string; readonly error: ServingError };

/** Triton's words before the reason of a version that is not available. */
const CODE_WORDS: Partial<Record<ErrorCode, string>> = {
  INVALID_ARGUMENT: 'Invalid argument',
  INTERNAL: 'Internal',
  NOT_FOUND: 'Not found',
  UNAVAILABLE: 'Unavailable',
  UNIMPLEMENTED: 'Unsupported',
};

export class ModelLoader {
  readonly #retries: number;
  /** Of the one worker whose lanes this opens; in a cluster lanes open by themselves. */
  readonly #devices = new DeviceCredits();
  #generation = 0;

  constructor(
    private readonly ports: LoaderPorts,
    private readonly records: ModelRecords,
    private readonly limiter: Limiter,
    private readonly emit: ModelEventListener,
    /** How often a worker that failed to load a version is asked again. */
    retries = 0,
  ) {
    this.#retries = retries;
  }

  /**
   * Resolves when every selected version is ready and routed; the old ones may still drain, see `drained`.
   * @throws ServingError INVALID_ARGUMENT with the reason of each version that failed
   */
  async apply(model: SourceModel, startedUs: number): Promise<{ drained: Promise<void> }> {
    const files = new HeldFiles(model.release);
    try {
      if (model.versions.length === 0) {
        throw new ServingError('INVALID_ARGUMENT',
          `load failed for model '${model.name}': at least one version must be available under the version policy of model '${model.name}'\n`,
          { reason: 'no_version_selected' }); // prettier-ignore
      }
      return await this.#apply(model, startedUs, files);
    } finally {
      await files.letGo();
    }
  }

  async #apply(model: SourceModel, startedUs: number, files: HeldFiles): Promise<{ drained: Promise<void> }> {
    const wanted = new Set(model.versions.map(({ version }) => version));
    const changed = model.versions.filter((version) => this.#needsLoad(model.name, version));
    for (const { version } of changed) this.#setState(model.name, version, 'LOADING', '');
    const results = await Promise.all(changed.map((version) => this.#start(model.name, version, startedUs)));
    const failures = results.filter((result): result is Failed => 'error' in result);
    const started = results.filter((result): result is Started => !('error' in result));
    if (failures.length > 0) throw await this.#giveUp(model.name, started, failures);
    const { worker } = this.ports;
    if (worker.activate) {
      const activate = worker.activate.bind(worker);
      await Promise.all(started.map(({ version, generation }) => activate(model.name, version.version, generation)));
    }
    const old = started.map((start) => this.#route(model, start, files.hold()));
    const gone = this.records.serving(model.name).filter(({ served }) => !wanted.has(served.version));
    const drained = Promise.all([...old.map((previous) => this.#retire(previous)), ...gone.map((serving) => this.#takeOut(serving))]).then(
      () => undefined,
    );
    for (const { version, serving } of this.records.of(model.name).versions.values()) {
      // A failed version of an earlier load that is no longer wanted is not missed.
      if (serving === undefined && !wanted.has(version)) this.#setState(model.name, version, 'UNAVAILABLE', UNLOADED);
    }
    return { drained };
  }

  /** Takes every version of a model out of service; resolves when all are drained and their instances gone. */
  async unload(name: string): Promise<void> {
    await Promise.all(this.records.serving(name).map((serving) => this.#takeOut(serving)));
    const record = this.records.find(name);
    if (record === undefined) return;
    record.failure = '';
    for (const { version } of record.versions.values()) this.#setState(name, version, 'UNAVAILABLE', UNLOADED);
  }

  #needsLoad(name: string, { version, fingerprint }: SourceVersion): boolean {
    return this.records.find(name)?.versions.get(version)?.serving?.fingerprint !== fingerprint;
  }

  async #start(name: string, version: SourceVersion, startedUs: number): Promise<Started | Failed> {
    if (!version.ok) return { version: version.version, error: version.error };
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#startOnce(name, version, startedUs);
      if (!('error' in outcome) || attempt >= this.#retries || outcome.error.reason === 'shutting_down') return outcome;
    }
  }

  async #startOnce(name: string, version: GoodVersion, startedUs: number): Promise<Started | Failed> {
    this.#generation = this.ports.nextGeneration?.() ?? this.#generation + 1;
    const generation = this.#generation;
    const { config, fingerprint, modelPath, inputs, outputs, warmup } = version;
    const spec: LoadSpec = { model: name, version: version.version, generation, config, modelPath, inputs, outputs, warmup };
    try {
      const report = await this.limiter.run(() => this.ports.worker.load(spec, fingerprint));
      return { version, generation: report.generation ?? generation, report, loadMs: (this.ports.clock.nowUs() - startedUs) / 1000 };
    } catch (thrown) {
      const error = toServingError(thrown);
      // Where the model lies on this machine is nothing for clients to know.
      const shown = `${name}/${version.version}/${basename(modelPath)}`;
      const message = modelPath === '' ? error.message : error.message.replaceAll(modelPath, shown);
      return { version: version.version, error: new ServingError(error.code, message, { reason: error.reason, cause: error }) };
    }
  }

  /** Makes a started version the one that answers. @returns what answered before */
  #route(model: SourceModel, { version, generation, report, loadMs }: Started, files: HeldFiles): ServingVersion | undefined {
    const { config, inputs, outputs, labels, fingerprint, remarks = [] } = version;
    const served: ServedModel = {
      name: model.name,
      version: version.version,
      config,
      maxBatchSize: config.maxBatchSize,
      inputs,
      outputs,
      labels,
    };
    const instances = report.instances.filter((name) => !isPassive(config, name));
    const deviceOf = sharesOf(report, this.#devices);
    const record = this.records.version(model.name, version.version);
    const previous = record.serving;
    // The lane first: once the catalog names the version, requests may come for it.
    this.ports.lanes.open({
      model: model.name,
      version: version.version,
      generation,
      config,
      inputs,
      instances,
      ...(deviceOf && { deviceOf }),
    });
    this.records.setServing(model.name, version.version, { served, generation, fingerprint, instances: new Set(instances), files });
    record.state = 'READY';
    record.reason = remarks.join('; ');
    if (this.ports.statistics) this.ports.statistics.forVersion(model.name, version.version).loadDurationMs = loadMs;
    this.emit({
      model: model.name,
      version: version.version,
      state: 'READY',
      reason: '',
      warnings: [...model.warnings, ...remarks, ...report.warnings],
      instances: report.instances,
      loadMs,
      ...(report.warmup === undefined ? {} : { warmup: report.warmup }),
    });
    return previous;
  }

  /** Stops an older generation once its batches are done. */
  async #retire(serving: ServingVersion | undefined): Promise<void> {
    if (serving === undefined) return;
    const { name, version } = serving.served;
    await this.ports.lanes.drain(name, version, serving.generation);
    await this.ports.worker.unload(name, version, serving.generation);
    await serving.files.letGo();
  }

  /** Takes a version out of the routing, lets its lane finish, stops its instances. */
  async #takeOut(serving: ServingVersion): Promise<void> {
    const { name, version } = serving.served;
    this.records.setServing(name, version, undefined);
    this.#setState(name, version, 'UNLOADING', '');
    await this.#retire(serving);
    this.#setState(name, version, 'UNAVAILABLE', UNLOADED);
    this.ports.statistics?.remove(name, version);
  }

  /** Stops what a failed load started, and says why it failed. */
  async #giveUp(name: string, started: readonly Started[], failures: readonly Failed[]): Promise<ServingError> {
    await Promise.all(started.map(({ version, generation }) => this.ports.worker.unload(name, version.version, generation)));
    for (const { version } of started)
      this.#fallBack(name, version.version, `unloaded, since version ${failures[0]?.version ?? ''} of the same load failed`);
    const texts = failures.map(({ version, error }) => {
      const reason = `${CODE_WORDS[error.code] ?? error.code}: ${error.message}`;
      this.#fallBack(name, version, reason);
      return `version ${version} is at UNAVAILABLE state: ${reason};`;
    });
    return new ServingError('INVALID_ARGUMENT', `load failed for model '${name}': ${texts.join(' ')}\n`, {
      reason: 'load_failed',
      cause: failures[0]?.error,
    });
  }

  /** What served before goes on; without it the version is unavailable. */
  #fallBack(name: string, version: string, reason: string): void {
    const record = this.records.version(name, version);
    if (record.serving === undefined) {
      this.#setState(name, version, 'UNAVAILABLE', reason);
    } else {
      record.state = 'READY';
      this.#emitState(name, record, `the reload failed and the loaded version goes on: ${reason}`);
    }
  }

  #setState(name: string, version: string, state: VersionRecord['state'], reason: string): void {
    const record = this.records.version(name, version);
    if (record.state === state && record.reason === reason) return;
    // While it is reloaded a version still answers, and says so.
    if (!(state === 'LOADING' && record.serving !== undefined)) record.state = state;
    record.reason = reason;
    if (record.state === state) this.#emitState(name, record, reason);
  }

  #emitState(model: string, record: VersionRecord, reason: string): void {
    const event: ModelEvent = { model, version: record.version, state: record.state, reason, warnings: [], instances: [], loadMs: 0 };
    this.emit(event);
  }
}
