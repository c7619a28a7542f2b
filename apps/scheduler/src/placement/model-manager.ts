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
import { readLoadRequest } from './load-request.js';
import { ModelDirectory } from './model-directory.js';
import type { ModelEvent, ModelEventListener } from './model-events.js';
import { ModelLoader, type LoaderPorts } from './model-loader.js';
import { ModelRecords, type ServingVersion } from './model-records.js';
import type { ModelSource, SourceRequest } from './model-source.js';
import { Limiter, OperationQueue } from './operation-queue.js';
import type { PollAction } from './repository-changes.js';
import { RepositoryPoll } from './repository-poll.js';

export type ControlMode = 'none' | 'poll' | 'explicit';

export interface ModelManagerOptions {
  readonly controlMode: ControlMode;
  /** Explicit mode: what to load at start; `*` alone means every model. */
  readonly startupModels: readonly string[];
  /** Loads that run side by side, Triton's `--model-load-thread-count`. Default 4. */
  readonly loadThreadCount?: number;
  /** How often a load that failed in the worker is tried again, Triton's `--model-load-retry-count`. Default 0. */
  readonly loadRetryCount?: number;
  /** Mode poll: between two looks at the repositories. Default 15 s. */
  readonly pollIntervalMs?: number;
  /** The last word on what is loaded at start, given the names that the mode says; default: those. Not in mode poll. */
  readonly startup?: (names: readonly string[]) => Promise<readonly StartupModel[]>;
  /** Mode poll: told when a repository cannot be read; all that is loaded stays. */
  readonly onPollFailure?: (error: ServingError) => void;
}

export interface ModelManagerPorts extends LoaderPorts {
  readonly source: ModelSource;
}

/** A model that is loaded at start. */
export interface StartupModel {
  readonly model: string;
  /** What a load request for it said; undefined = nothing. */
  readonly request?: SourceRequest;
  /** False: the server is ready without it. */
  readonly required?: boolean;
}

/** How the start-up came out. */
export interface StartReport {
  readonly models: readonly { readonly model: string; readonly error: ServingError | undefined }[];
  /** Entries of the repositories that are ignored, with the reason; one text each. */
  readonly warnings: readonly string[];
}

const ALL_MODELS = '*';

type Action = PollAction | ({ readonly kind: 'load' } & StartupModel);

export class ModelManager implements ModelCatalog, ModelControl {
  readonly #records = new ModelRecords();
  readonly #directory = new ModelDirectory(this.#records);
  readonly #operations = new OperationQueue();
  readonly #listeners = new Set<ModelEventListener>();
  readonly #loader: ModelLoader;
  readonly #poll: RepositoryPoll | undefined;
  #started = false;
  #stopping = false;

  constructor(
    private readonly ports: ModelManagerPorts,
    private readonly options: ModelManagerOptions,
  ) {
    const limiter = new Limiter(options.loadThreadCount ?? 4);
    this.#loader = new ModelLoader(ports, this.#records, limiter, (event) => this.#emit(event), options.loadRetryCount);
    if (options.controlMode !== 'poll') return;
    this.#poll = new RepositoryPoll(ports.source, ports.clock, {
      intervalUs: 1000 * (options.pollIntervalMs ?? 15_000),
      onActions: (actions) => void this.#carryOut(actions),
      onFailure: (error) => options.onPollFailure?.(error),
    });
  }

  /**
   * Loads what the control mode says, side by side, and resolves when each model is ready or has failed; never rejects
   * for a model. Until then {@link allReady} is false.
   * @throws ServingError INVALID_ARGUMENT when `*` is combined with names, NOT_FOUND for a repository that cannot be read
   */
  async start(): Promise<StartReport> {
    const warnings = await this.ports.source.open();
    const actions = this.#poll ? await this.#poll.first() : await this.#startupActions();
    for (const action of actions) if (!('required' in action && action.required === false)) this.#records.of(action.model).required = true;
    const models = await this.#carryOut(actions);
    this.#started = true;
    this.#poll?.start();
    return { models, warnings };
  }

  async #startupActions(): Promise<readonly Action[]> {
    const names = this.#startupNames();
    const models = (await this.options.startup?.(names)) ?? names.map((model) => ({ model }));
    return models.map((each) => ({ kind: 'load', ...each }));
  }

  /** Side by side; never rejects for a model. */
  #carryOut(actions: readonly Action[]): Promise<StartReport['models']> {
    const outcomes = actions.map(async (action) => {
      const { model } = action;
      const request = 'versions' in action ? { versions: action.versions } : (('request' in action ? action.request : undefined) ?? {});
      const done = action.kind === 'load' ? this.#load(model, request) : this.#unload(model);
      return { model, error: await done.then(() => undefined, toServingError) };
    });
    return Promise.all(outcomes);
  }

  #startupNames(): readonly string[] {
    const { controlMode, startupModels } = this.options;
    if (controlMode !== 'explicit') return this.ports.source.names();
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
    this.#poll?.stop();
    const names = [...this.#records.all()].map(({ name }) => name);
    await Promise.all(names.map((name) => this.#unload(name)));
  }

  /** Leaves everything as it is, for somebody else to go on with. Later loads are refused. */
  abandon(): void {
    this.#stopping = true;
    this.#poll?.stop();
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

  /** Every load that takes requests now. */
  serving(): readonly Pick<ServingVersion, 'served' | 'generation'>[] {
    return [...this.#records.all()].flatMap(({ name }) => this.#records.serving(name));
  }

  /** Whether the loads of the start-up have ended, well or not. */
  get started(): boolean {
    return this.#started && !this.#stopping;
  }

  /** The version that takes requests under that number, if there is one. */
  find(name: string, version: string): ServedModel | undefined {
    return this.#records.find(name)?.versions.get(version)?.serving?.served;
  }

  allReady(): boolean {
    return this.started && this.#directory.allReady();
  }

  index(readyOnly: boolean): readonly ModelIndexEntry[] {
    return this.#records.index(this.ports.source.names(), readyOnly);
  }

  async load(name: string, parameters: Readonly<Record<string, LoadParameter>>): Promise<void> {
    this.#requireExplicit();
    await this.#load(name, readLoadRequest(parameters));
  }

  /** {@link load} with parameters that have been read already. */
  async loadAs(name: string, request: SourceRequest): Promise<void> {
    this.#requireExplicit();
    await this.#load(name, request);
  }

  /** Loads again, by no request, what could not be loaded when it was asked for. */
  async retry(name: string, request: SourceRequest): Promise<void> {
    await this.#load(name, request);
  }

  async unload(name: string, _options: { readonly unloadDependents: boolean }): Promise<void> {
    this.#requireExplicit();
    await this.#unload(name);
  }

  #unload(name: string): Promise<void> {
    return this.#operations.run(name, () => this.#loader.unload(name));
  }

  #requireExplicit(): void {
    if (this.options.controlMode === 'explicit') return;
    throw new ServingError('UNAVAILABLE', 'explicit model load / unload is not allowed if polling is enabled', { reason: 'control_mode' });
  }

  /** Resolves when the model is ready; the next operation on it also waits for the old versions to drain. */
  #load(name: string, request: SourceRequest): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const operation = async (): Promise<void> => {
        const { drained } = await this.#bring(name, request);
        resolve();
        await drained;
      };
      this.#operations.run(name, operation).catch(reject);
    });
  }

  async #bring(name: string, request: SourceRequest): Promise<{ drained: Promise<void> }> {
    if (this.#stopping) throw new ServingError('UNAVAILABLE', 'the server is shutting down', { reason: 'shutting_down' });
    const startedUs = this.ports.clock.nowUs();
    try {
      const model = await this.ports.source.read(name, request);
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
    if (!unknown || this.#records.find(name)?.required === true) this.#records.of(name).failure = error.message.trimEnd();
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
    const ours = error.code === 'INTERNAL' || error.code === 'UNAVAILABLE';
    const code = ours ? error.code : 'INVALID_ARGUMENT';
    return new ServingError(code, `failed to load '${name}', failed to poll from model repository: ${error.message}`, {
      reason: error.reason,
      cause: error,
    });
  }

  #emit(event: ModelEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}
