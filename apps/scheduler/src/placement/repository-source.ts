/**
 * The model source over local model repositories: joins what lies on disk with the rules of configurations. `read` is for
 * loading and gives up a model that cannot be served; `inspect` is for its author and tells everything that is wrong.
 */
import {
  finishConfig,
  jsonStates,
  modelConfigFromJson,
  prepareConfig,
  selectVersions,
  type ConfigWarning,
  type FinishOptions,
  type Prepared,
} from '@paceline/core';
import { ConfigSyntaxError, LocalModelRepository, type ConfigText, type RepositoryModel } from '@paceline/model-repository';
import { ServingError, toServingError } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import { findingOf, formatFinding, ignoredFinding, InvalidConfigError, plainFinding, type Finding } from './config-report.js';
import type { ModelSource, Observation, SourceModel, SourceRequest, SourceVersion } from './model-source.js';
import { Limiter } from './operation-queue.js';
import { layOutFiles, uploadedBefore, type UploadedRepository } from './uploaded-files.js';
import { readWarmup } from './warmup-samples.js';

export interface RepositorySourceOptions {
  /** Batch size of models that can batch and state none. Default 4, as Triton's. */
  readonly defaultMaxBatchSize?: number;
  /** Instances of a CPU group without a count. Default 2, as Triton's ONNX Runtime backend. */
  readonly cpuInstanceCount?: number;
  /** Numbers of the GPUs that models of a backend can run on; default none. `by-worker`: workers differ, each decides. */
  readonly gpus?: 'by-worker' | ((backend: string) => readonly number[]);
  /** False: configurations stand as written, and each model needs one. Default true. */
  readonly autoComplete?: boolean;
}

/** Models read side by side: more would only hold more files open. */
const READERS = 8;

/** A configuration as its author wrote it: the file of the model, or the JSON of a load request. */
interface Written {
  readonly config: ModelConfig | undefined;
  readonly text: ConfigText | undefined;
  readonly fingerprint: string;
  readonly statesMaxBatchSize: boolean;
}

/** What the author of a model should know of it. */
export interface Inspection {
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
  /** Final configurations of the selected versions that could be loaded. */
  readonly configs: readonly ModelConfig[];
  /** Gives a remark of somebody else its place in the model's configuration. */
  readonly locate: (remark: ConfigWarning) => Finding;
}

function writtenAsJson(json: string): Written {
  try {
    return {
      config: modelConfigFromJson(json),
      text: undefined,
      fingerprint: `json:${json}`,
      statesMaxBatchSize: jsonStates(json, 'max_batch_size', 'maxBatchSize'),
    };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ServingError('INVALID_ARGUMENT', `the load parameter 'config' is no model configuration in JSON: ${why}`, {
      reason: 'config_syntax',
      cause,
    });
  }
}

export class RepositoryModelSource implements ModelSource {
  readonly #options: Required<Omit<RepositorySourceOptions, 'gpus'>>;
  readonly #gpus: RepositorySourceOptions['gpus'];
  readonly #readers = new Limiter(READERS);

  constructor(
    private readonly repository: LocalModelRepository,
    { gpus, ...options }: RepositorySourceOptions = {},
  ) {
    this.#options = { defaultMaxBatchSize: 4, cpuInstanceCount: 2, autoComplete: true, ...options };
    this.#gpus = gpus;
  }

  async open(): Promise<readonly string[]> {
    return (await this.entries()).map(formatFinding);
  }

  /** Entries of the repositories that are ignored. @throws ServingError NOT_FOUND when a repository cannot be read */
  async entries(): Promise<readonly Finding[]> {
    return (await this.repository.list()).ignored.map(ignoredFinding);
  }

  names(): readonly string[] {
    return this.repository.names();
  }

  observe(): Promise<ReadonlyMap<string, Observation>> {
    return this.repository.observe();
  }

  read(name: string, request: SourceRequest): Promise<SourceModel | undefined> {
    return this.#readers.run(async () => {
      if (request.root !== undefined) return this.#readUploaded(name, request, uploadedBefore(request.root));
      if (request.files === undefined || request.files.size === 0) return this.#read(this.repository, name, request);
      return this.#readUploaded(name, request, await layOutFiles(name, request.files));
    });
  }

  async #readUploaded(name: string, request: SourceRequest, uploaded: UploadedRepository): Promise<SourceModel | undefined> {
    try {
      const model = await this.#read(new LocalModelRepository({ roots: [uploaded.root] }), name, request);
      return model && { ...model, release: () => uploaded.remove() };
    } catch (error) {
      await uploaded.remove();
      throw error;
    }
  }

  async #read(repository: LocalModelRepository, name: string, request: SourceRequest): Promise<SourceModel | undefined> {
    const model = await repository.read(name, { ignoreConfig: request.config !== undefined });
    if (model === undefined) return undefined;
    const written = this.#written(model, request.config);
    const prepared = this.#prepare(model, written);
    if (prepared.issues.length > 0) throw new InvalidConfigError(prepared.issues.map((issue) => findingOf(issue, written.text)));
    const { versions, warnings } = await this.#versions(repository, model, written, prepared, request.versions);
    return { name, versions, warnings: warnings.map(formatFinding) };
  }

  /**
   * Everything that is wrong with a model, not only what a load would stumble over first. Never rejects.
   * @returns an empty one where there is no such model
   */
  async inspect(name: string): Promise<Inspection> {
    let text: ConfigText | undefined;
    const locate = (remark: ConfigWarning): Finding => findingOf(remark, text);
    try {
      const model = await this.repository.read(name);
      if (model === undefined) return { errors: [], warnings: [], configs: [], locate };
      const written = this.#written(model, undefined);
      text = written.text;
      const prepared = this.#prepare(model, written);
      const { versions, warnings } = await this.#versions(this.repository, model, written, prepared, undefined);
      const errors = prepared.issues.map(locate);
      if (versions.length === 0) {
        errors.push(plainFinding(`at least one version must be available under the version policy of model '${name}'`));
      }
      for (const version of versions) if (!version.ok) errors.push(...findingsOfError(version.error));
      const remarks = new Set(versions.flatMap((version) => (version.ok ? (version.remarks ?? []) : [])));
      for (const remark of remarks) warnings.push(plainFinding(remark));
      return { errors, warnings, configs: versions.flatMap((version) => (version.ok ? [version.config] : [])), locate };
    } catch (thrown) {
      return { errors: findingsOfError(thrown), warnings: [], configs: [], locate };
    }
  }

  #written(model: RepositoryModel, override: string | undefined): Written {
    if (override !== undefined) return writtenAsJson(override);
    const { configText } = model;
    return {
      config: configText?.config,
      text: configText,
      fingerprint: model.configFingerprint,
      statesMaxBatchSize: configText?.states('max_batch_size') ?? false,
    };
  }

  #prepare(model: RepositoryModel, { config }: Written): Prepared {
    return prepareConfig({ model: model.name, config, files: model.files, autoComplete: this.#options.autoComplete });
  }

  async #versions(
    repository: LocalModelRepository,
    model: RepositoryModel,
    written: Written,
    prepared: Prepared,
    present: ReadonlySet<string> | undefined,
  ): Promise<{ versions: SourceVersion[]; warnings: Finding[] }> {
    const available = present === undefined ? model.versions : model.versions.filter((version) => present.has(version));
    const { selected, absent } = selectVersions(prepared.config.versionPolicy, available);
    return {
      versions: await Promise.all(selected.map((version) => this.#version(repository, model, version, prepared.config, written))),
      warnings: [
        ...prepared.warnings.map((warning) => findingOf(warning, written.text)),
        ...model.ignored.map(ignoredFinding),
        ...absent.map((version) =>
          plainFinding(`version ${version} is specified for model '${model.name}', but the version directory is not present`),
        ),
      ],
    };
  }

  async #version(
    repository: LocalModelRepository,
    model: RepositoryModel,
    version: string,
    prepared: ModelConfig,
    written: Written,
  ): Promise<SourceVersion> {
    const print = await repository.versionFingerprint(model, version, companionFiles(prepared));
    const fingerprint = `${written.fingerprint}\n${print}`;
    try {
      const gpus = typeof this.#gpus === 'function' ? this.#gpus(prepared.backend) : this.#gpus;
      const options: FinishOptions = { ...this.#options, ...(gpus && { gpus }), maxBatchSizeStated: written.statesMaxBatchSize };
      // A simulated accelerator has no file, a backend that is not served none that this server could read.
      const modelPath = prepared.backend === 'onnxruntime' ? await repository.modelFile(model, version, prepared.defaultModelFilename) : '';
      const file = modelPath === '' ? undefined : await repository.describe(model, version, modelPath);
      const finished = finishConfig(prepared, file, options);
      if (!finished.ok) throw new InvalidConfigError(finished.issues.map((issue) => findingOf(issue, written.text)));
      const { config, inputs, outputs } = finished;
      const labels = await readLabels(repository, model, config);
      const warmup = await readWarmup(repository, model, finished.warmup);
      const remarks = finished.warnings.map((warning) => formatFinding(findingOf(warning, written.text)));
      return { version, fingerprint, ok: true, modelPath, labels, config, inputs, outputs, warmup, remarks };
    } catch (error) {
      return { version, fingerprint, ok: false, error: toServingError(error) };
    }
  }
}

/** Files outside the version folders that a version is made of. */
function companionFiles(config: ModelConfig): string[] {
  const labels = config.output.map((output) => output.labelFilename).filter((file) => file !== '');
  return config.modelWarmup.length > 0 ? [...labels, 'warmup'] : labels;
}

async function readLabels(
  repository: LocalModelRepository,
  model: RepositoryModel,
  config: ModelConfig,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const { name, labelFilename } of config.output) {
    if (labelFilename !== '') labels.set(name, await repository.labels(model, labelFilename));
  }
  return labels;
}

function findingsOfError(thrown: unknown): Finding[] {
  if (thrown instanceof InvalidConfigError) return [...thrown.findings];
  if (thrown instanceof ConfigSyntaxError && thrown.faults.length > 0) {
    const { file } = thrown;
    return thrown.faults.map(({ line, column, path, expected, found, hint }) => ({
      file,
      line,
      column,
      field: path,
      message: `expected ${expected}, found ${found}`,
      expected,
      found,
      hint,
    }));
  }
  return [plainFinding(toServingError(thrown).message)];
}
