/** The model source over local model repositories: joins what lies on disk with the rules of configurations. */
import {
  finishConfig,
  jsonStates,
  modelConfigFromJson,
  prepareConfig,
  selectVersions,
  type ConfigIssue,
  type FinishOptions,
} from '@paceline/core';
import type { ConfigText, IgnoredEntry, LocalModelRepository, RepositoryModel } from '@paceline/model-repository';
import { ServingError, toServingError } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import { formatIssues, formatWarnings } from './config-report.js';
import type { ModelSource, SourceModel, SourceVersion } from './model-source.js';

export interface RepositorySourceOptions {
  /** Batch size of models that can batch and state none. Default 4, as Triton's. */
  readonly defaultMaxBatchSize?: number;
  /** Instances of a CPU group without a count. Default 2, as Triton's ONNX Runtime backend. */
  readonly cpuInstanceCount?: number;
}

/** A configuration as its author wrote it: the file of the model, or the JSON of a load request. */
interface Written {
  readonly config: ModelConfig | undefined;
  readonly text: ConfigText | undefined;
  readonly fingerprint: string;
  readonly statesMaxBatchSize: boolean;
}

function refusal(issues: readonly ConfigIssue[], text: ConfigText | undefined): ServingError {
  return new ServingError('INVALID_ARGUMENT', formatIssues(issues, text), { reason: 'invalid_model_config' });
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

function formatIgnored({ entry, reason }: IgnoredEntry): string {
  return `'${entry}' is ignored: ${reason}`;
}

export class RepositoryModelSource implements ModelSource {
  readonly #options: Required<RepositorySourceOptions>;

  constructor(
    private readonly repository: LocalModelRepository,
    options: RepositorySourceOptions = {},
  ) {
    this.#options = { defaultMaxBatchSize: 4, cpuInstanceCount: 2, ...options };
  }

  async open(): Promise<readonly string[]> {
    const { ignored } = await this.repository.list();
    return ignored.map(formatIgnored);
  }

  names(): readonly string[] {
    return this.repository.names();
  }

  async read(name: string, configOverride: string | undefined): Promise<SourceModel | undefined> {
    const model = await this.repository.read(name, { ignoreConfig: configOverride !== undefined });
    if (model === undefined) return undefined;
    const written: Written =
      configOverride === undefined
        ? {
            config: model.configText?.config,
            text: model.configText,
            fingerprint: model.configFingerprint,
            statesMaxBatchSize: model.configText?.states('max_batch_size') ?? false,
          }
        : writtenAsJson(configOverride);
    const prepared = prepareConfig({ model: name, config: written.config, files: model.files });
    if (!prepared.ok) throw refusal(prepared.issues, written.text);
    const { selected, absent } = selectVersions(prepared.config.versionPolicy, model.versions);
    return {
      name,
      versions: await Promise.all(selected.map((version) => this.#version(model, version, prepared.config, written))),
      warnings: [
        ...formatWarnings(prepared.warnings, written.text),
        ...model.ignored.map(formatIgnored),
        ...absent.map((version) => `version ${version} is specified for model '${name}', but the version directory is not present`),
      ],
    };
  }

  async #version(model: RepositoryModel, version: string, prepared: ModelConfig, written: Written): Promise<SourceVersion> {
    const labelFiles = prepared.output.map((output) => output.labelFilename).filter((file) => file !== '');
    const fingerprint = `${written.fingerprint}\n${await this.repository.versionFingerprint(model, version, labelFiles)}`;
    try {
      const options: FinishOptions = { ...this.#options, maxBatchSizeStated: written.statesMaxBatchSize };
      // A backend that is not served has no file this server could read.
      const modelPath =
        prepared.backend === 'onnxruntime' ? await this.repository.modelFile(model, version, prepared.defaultModelFilename) : '';
      const file = modelPath === '' ? undefined : await this.repository.describe(model, version, modelPath);
      const finished = finishConfig(prepared, file, options);
      if (!finished.ok) throw refusal(finished.issues, written.text);
      const labels = await this.#labels(model, finished.config);
      return {
        version,
        fingerprint,
        ok: true,
        modelPath,
        labels,
        config: finished.config,
        inputs: finished.inputs,
        outputs: finished.outputs,
      };
    } catch (error) {
      return { version, fingerprint, ok: false, error: toServingError(error) };
    }
  }

  async #labels(model: RepositoryModel, config: ModelConfig): Promise<ReadonlyMap<string, readonly string[]>> {
    const labels = new Map<string, readonly string[]>();
    for (const { name, labelFilename } of config.output) {
      if (labelFilename !== '') labels.set(name, await this.repository.labels(model, labelFilename));
    }
    return labels;
  }
}
