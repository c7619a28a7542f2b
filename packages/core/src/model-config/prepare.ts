/**
 * The two stages of making a configuration final, in Triton's order. Stage one judges what the text alone decides and
 * chooses backend and file name; stage two completes and checks it against one version's model file. Both leave their
 * argument alone and report every issue they find, not the first.
 */
import { clone, create } from '@bufbuild/protobuf';
import type { ModelFileDescription, TensorSpec } from '@paceline/protocol';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';
import { checkBackend, fillBackend, SIMULATED_BACKEND } from './backend.js';
import { completeFromFile, type CompletionOptions } from './complete.js';
import { describeTensors } from './describe.js';
import { checkFields } from './field-check.js';
import { IssueList, type ConfigIssue, type ConfigWarning } from './issue.js';
import { checkAgainstFile } from './model-check.js';
import { normaliseConfig, normaliseInstanceGroups, type InstanceDefaults } from './normalise.js';
import { checkBatchDependence, checkParameters } from './parameters.js';
import { checkSimulated, checkSimulatedTensors } from './simulated.js';
import { checkReshapes } from './validate-reshape.js';
import { checkInstanceGroups, checkScheduling } from './validate-scheduling.js';
import { checkTensors } from './validate-tensors.js';
import { planWarmup, type WarmupPlan } from './warmup.js';

export type Judged<T> = ({ readonly ok: true } & T) | { readonly ok: false; readonly issues: readonly ConfigIssue[] };

export interface ConfigSource {
  /** Name of the model's folder. */
  readonly model: string;
  /** As written; undefined where the model has no configuration file. */
  readonly config: ModelConfig | undefined;
  /** Names of the entries of the version folders, any version, without duplicates. */
  readonly files: readonly string[];
  /** False: nothing is completed from the model file, so that there must be a configuration. */
  readonly autoComplete?: boolean;
}

/** The outcome of stage one. */
export interface Prepared {
  /** As far as it could be prepared: fit for stage two where there is no issue, or to look for further issues. */
  readonly config: ModelConfig;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly ConfigWarning[];
}

/** Stage one. The issues' paths refer to the configuration as written. */
export function prepareConfig(source: ConfigSource): Prepared {
  const config = source.config === undefined ? create(ModelConfigSchema) : clone(ModelConfigSchema, source.config);
  const issues = new IssueList();
  if (source.config === undefined && source.autoComplete === false) {
    issues.add('', `model '${source.model}' has no config.pbtxt, and configurations are not completed from model files`,
      'write one, or start without --disable-auto-complete-config'); // prettier-ignore
  }
  const warnings = [...checkFields(config, source.model, issues), ...checkParameters(config, issues)];
  fillBackend(config, source.model, source.files, issues);
  warnings.push(...checkSimulated(config, issues));
  normaliseConfig(config);
  checkScheduling(config, issues);
  return { config, issues: issues.issues, warnings };
}

export interface FinishOptions extends CompletionOptions, InstanceDefaults {
  /** False: inputs, outputs and batch size stand as written. Default true. */
  readonly autoComplete?: boolean;
}

export interface FinishedConfig {
  /** Normalised and complete: what a config route answers. */
  readonly config: ModelConfig;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /** What each instance runs before it is ready, in the order of the configuration. */
  readonly warmup: readonly WarmupPlan[];
  /** What this version's model file adds to the warnings of stage one. */
  readonly warnings: readonly ConfigWarning[];
}

/**
 * Stage two, for one version.
 * @param prepared from stage one
 * @param file undefined for a simulated accelerator, and when the backend is not served, which is then the only issue
 */
export function finishConfig(
  prepared: ModelConfig,
  file: ModelFileDescription | undefined,
  options: FinishOptions,
): Judged<FinishedConfig> {
  const config = clone(ModelConfigSchema, prepared);
  const issues = new IssueList();
  checkBackend(config, issues);
  const simulated = config.backend === SIMULATED_BACKEND;
  if (issues.issues.length > 0 || (file === undefined && !simulated)) return { ok: false, issues: issues.issues };
  if (simulated) checkSimulatedTensors(config, issues);
  else if (file !== undefined && options.autoComplete !== false) completeFromFile(config, file, options, issues);
  // Each instance is an accelerator: none is added that the author did not ask for.
  normaliseInstanceGroups(config, simulated ? { ...options, cpuInstanceCount: 1 } : options);
  const before = issues.issues.length;
  checkTensors(config, issues);
  checkReshapes(config, issues);
  // A tensor that is wrong by itself would only be reported twice.
  if (file !== undefined && issues.issues.length === before) checkAgainstFile(config, file, issues);
  checkInstanceGroups(config, issues);
  checkScheduling(config, issues);
  if (issues.issues.length > 0) return { ok: false, issues: issues.issues };
  const tensors = describeTensors(config, file);
  const warmup = planWarmup(config, tensors.inputs, issues);
  if (issues.issues.length > 0) return { ok: false, issues: issues.issues };
  return { ok: true, config, ...tensors, warmup, warnings: file === undefined ? [] : checkBatchDependence(config, file) };
}
