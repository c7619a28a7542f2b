/**
 * Placement of an embedded server: which models are loaded, by control mode and by request. It is the model catalog and
 * the model control of its gateways. Invariants: operations on one model run one after the other; a model that fails
 * leaves the others alone; a version leaves the routing before its lane drains, and enters it after its instances are
 * ready.
 */
import {
  ServingError,
  toServingError,
  type LoadParameter,
  type ModelCatalog,
  type ModelControl,
  type ModelIndexEntry,
  type ServedModel,
} from '@paceline/protocol';
import type { InstanceEvent } from '@paceline/worker-rpc';
import { ModelDirectory } from './model-directory.js';
import type { ModelEvent, ModelEventListener } from './model-events.js';
import { ModelLoader, type LoaderPorts } from './model-loader.js';
import { ModelRecords } from './model-records.js';
import type { ModelSource } from './model-source.js';
import { Limiter, OperationQueue } from './operation-queue.js';

export type ControlMode = 'none' | 'explicit';

export interface ModelManagerOptions {
  readonly controlMode: ControlMode;
  /** Explicit mode: what to load at start; `*` alone means every model. */
  readonly startupModels: readonly string[];
  /** Loads that run side by side, Triton's `--model-load-thread-count`. Default 4. */
  readonly loadThreadCount?: number;
}

export interface ModelManagerPorts extends LoaderPorts {
  readonly source: ModelSource;
}

/** How the start-up came out. */
export interface StartReport {
  readonly models: readonly { readonly model: string; readonly error: ServingError | undefined }[];
  /** Entries of the repositories that are ignored, with the reason; one text each. */
  readonly warnings: readonly string[];
}

const ALL_MODELS = '*';

export class ModelManager implements ModelCatalog, ModelControl {
  readonly #records = new ModelRecords();
  readonly #directory = new ModelDirectory(this.#records);
  readonly #operations = new OperationQueue();
  readonly #listeners = new Set<ModelEventListener>();
  readonly #loader: ModelLoader;
  /** Models of the start-up. */
  readonly #required = new Set<string>();
  #started = false;
  #stopping = false;

  constructor(
    private readonly ports: ModelManagerPorts,
    private readonly options: ModelManagerOptions,
  ) {
    const limiter = new Limiter(options.loadThreadCount ?? 4);
    this.#loader = new ModelLoader(ports, this.#records, limiter, (event) => this.#emit(event));
  }

  /**
   * Loads what the control mode says, side by side, and resolves when each model is ready or has failed; never rejects
   * for a model. Until then {@link allReady} is false.
   * @throws ServingError INVALID_ARGUMENT when `*` is combined with names, NOT_FOUND for a repository that cannot be read
   */
  async start(): Promise<StartReport> {
    const warnings = await this.ports.source.open();
    const names = this.#startupNames();
    for (const name of names) this.#required.add(name);
    const models = await Promise.all(
      names.map((model) => this.#load(model, undefined).then(() => undefined, toServingError).then((error) => ({ model, error }))),
    ); // prettier-ignore
    this.#started = true;
    return { models, warnings };
  }

  #startupNames(): readonly string[] {
    const { controlMode, startupModels } = this.options;
    if (controlMode === 'none') return this.ports.source.names();
    if (!startupModels.includes(ALL_MODELS)) return [...new Set(startupModels)];
    if (startupModels.length > 1) {
      throw new ServingError('INVALID_ARGUMENT', "Wildcard model name '*' must be the ONLY startup model if specified at all.", {
        reason: 'startup_models',
      });
    }
    return this.ports.source.names();
  }

  /** Takes every model out of service and resolves when all lanes are drained. Later loads are refused. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const names = [...this.#records.all()].map(({ name }) => name);
    await Promise.all(names.map((name) => this.#operations.run(name, () => this.#loader.unload(name))));
  }

  /** @returns a function that ends the subscription */
  subscribe(listener: ModelEventListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** To be told of every instance that comes up or goes down, so that readiness tells the truth. */
  noteInstance(event: InstanceEvent): void {
    const serving = this.#records.find(event.model)?.versions.get(event.version)?.serving;
    if (serving?.generation !== event.generation) return;
    if (event.state === 'ready') serving.instances.add(event.instance);
    else serving.instances.delete(event.instance);
  }

  resolve(name: string, version: string): ServedModel {
    return this.#directory.resolve(name, version);
  }

  readyVersions(name: string): readonly string[] {
    return this.#directory.readyVersions(name);
  }

  isHealthy(model: ServedModel): boolean {
    return this.#directory.isHealthy(model);
  }

  served(): readonly ServedModel[] {
    return this.#directory.served();
  }

  allReady(): boolean {
    return this.#started && !this.#stopping && this.#directory.allReady();
  }

  index(readyOnly: boolean): readonly ModelIndexEntry[] {
    return this.#records.index(this.ports.source.names(), readyOnly);
  }

  async load(name: string, parameters: Readonly<Record<string, LoadParameter>>): Promise<void> {
    this.#requireExplicit();
    await this.#load(name, configOverride(parameters));
  }

  async unload(name: string, _options: { readonly unloadDependents: boolean }): Promise<void> {
    this.#requireExplicit();
    await this.#operations.run(name, () => this.#loader.unload(name));
  }

  #requireExplicit(): void {
    if (this.options.controlMode === 'explicit') return;
    throw new ServingError('UNAVAILABLE', 'explicit model load / unload is not allowed if polling is enabled', { reason: 'control_mode' });
  }

  /** Resolves when the model is ready; the next operation on it also waits for the old versions to drain. */
  #load(name: string, override: string | undefined): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const operation = async (): Promise<void> => {
        const { drained } = await this.#bring(name, override);
        resolve();
        await drained;
      };
      this.#operations.run(name, operation).catch(reject);
    });
  }

  async #bring(name: string, override: string | undefined): Promise<{ drained: Promise<void> }> {
    if (this.#stopping) throw new ServingError('UNAVAILABLE', 'the server is shutting down', { reason: 'shutting_down' });
    const startedUs = this.ports.clock.nowUs();
    try {
      const model = await this.ports.source.read(name, override);
      if (model === undefined) {
        throw new ServingError('NOT_FOUND', 'no model repository has a folder of that name', { reason: 'unknown_model' });
      }
      const result = await this.#loader.apply(model, startedUs);
      this.#records.of(name).failure = '';
      return result;
    } catch (thrown) {
      throw this.#loadFailure(name, toServingError(thrown));
    }
  }

  /** Records and words a failure that came before any version, and passes on those of versions. */
  #loadFailure(name: string, error: ServingError): ServingError {
    if (error.reason === 'load_failed') return error;
    const unknown = error.reason === 'unknown_model' || error.reason === 'unsafe_name';
    // A name that no repository has must not stay in the index, unless the server was started for it.
    if (!unknown || this.#required.has(name)) {
      const record = this.#records.of(name);
      record.failure = error.message.trimEnd();
      record.required = this.#required.has(name);
    }
    this.#emit({
      model: name,
      version: undefined,
      state: 'UNAVAILABLE',
      reason: error.message.trimEnd(),
      warnings: [],
      instances: [],
      loadMs: 0,
    });
    if (error.reason === 'no_version_selected' || error.reason === 'shutting_down') return error;
    const code = error.code === 'INTERNAL' ? 'INTERNAL' : 'INVALID_ARGUMENT';
    return new ServingError(code, `failed to load '${name}', failed to poll from model repository: ${error.message}`, {
      reason: error.reason,
      cause: error,
    });
  }

  #emit(event: ModelEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** The `config` parameter of a load. @throws ServingError INVALID_ARGUMENT for any other parameter */
function configOverride(parameters: Readonly<Record<string, LoadParameter>>): string | undefined {
  let config: string | undefined;
  for (const [key, value] of Object.entries(parameters)) {
    if (key === 'config') {
      if (typeof value !== 'string') {
        throw new ServingError('INVALID_ARGUMENT', `load parameter 'config' must be a string, but it is a ${typeof value}`, {
          reason: 'load_parameter',
        });
      }
      config = value;
    } else if (key.startsWith('file:')) {
      throw new ServingError('INVALID_ARGUMENT', `load parameter '${key}' is not served: model files come from the model repository only`, {
        reason: 'load_parameter',
      });
    } else {
      throw new ServingError('INVALID_ARGUMENT', `unrecognized load parameter '${key}'.`, { reason: 'load_parameter' });
    }
  }
  return config;
}
