/**
 * What Paceline does with each field of a model configuration: serve it, accept it as a performance hint without
 * effect (one warning), or refuse the model by the field's name. Invariant: every field of every message of the schema
 * has an entry, or its whole message has one; a test walks the schema.
 */

export type FieldRule =
  | { readonly rule: 'served' }
  /** Accepted with a warning: neither answers nor scheduling depend on it. */
  | { readonly rule: 'hint'; readonly why: string }
  /** Keeps the model from loading: answers or scheduling would not be what the configuration says. */
  | { readonly rule: 'refused'; readonly why: string };

/** Rules of one message: per field, or one rule for all of them. */
export type MessageRules = FieldRule | { readonly rule?: never; readonly fields: Readonly<Record<string, FieldRule>> };

const served: FieldRule = { rule: 'served' };
const hint = (why: string): FieldRule => ({ rule: 'hint', why });
const refused = (why: string): FieldRule => ({ rule: 'refused', why });

const tensorRtOnly = refused('it has a meaning for the TensorRT backend only');
const noBinding = hint('ONNX Runtime for Node has no way to say it');
const noOtherProvider = refused('on the processor there is no execution provider beside the CPU one');
const noSequences = refused('sequence batching is not served');
const noEnsembles = refused('ensembles are not served');
const noRagged = refused('ragged batching is not served');
const noAgents = refused('repository agents are not served');

/** Keyed by message name without the package, then by the field's name in the .proto. */
export const FIELD_TABLE: Readonly<Record<string, MessageRules>> = {
  ModelConfig: {
    fields: {
      name: served,
      platform: served,
      version_policy: served,
      max_batch_size: served,
      input: served,
      output: served,
      instance_group: served,
      default_model_filename: served,
      cc_model_filenames: hint('the file is not chosen by the compute capability of a GPU'),
      metric_tags: served,
      dynamic_batching: served,
      optimization: served,
      sequence_batching: noSequences,
      parameters: served,
      ensemble_scheduling: noEnsembles,
      model_warmup: served,
      backend: served,
      model_operations: refused('custom operator libraries are not loaded'),
      model_transaction_policy: served,
      batch_input: noRagged,
      batch_output: noRagged,
      model_repository_agents: noAgents,
      response_cache: served,
      runtime: refused('the backend has one runtime and it cannot be replaced'),
      model_metrics: hint('the histograms have fixed buckets'),
    },
  },
  ModelRateLimiter: refused('the rate limiter is not served'),
  'ModelRateLimiter.Resource': refused('the rate limiter is not served'),
  ModelInstanceGroup: {
    fields: {
      name: served,
      count: served,
      gpus: served,
      kind: served,
      profile: tensorRtOnly,
      rate_limiter: refused('the rate limiter is not served'),
      passive: served,
      secondary_devices: refused('secondary devices are not served'),
      host_policy: hint('host policies are not applied'),
    },
  },
  'ModelInstanceGroup.SecondaryDevice': refused('secondary devices are not served'),
  ModelTensorReshape: { fields: { shape: served } },
  ModelInput: {
    fields: {
      name: served,
      data_type: served,
      format: served,
      dims: served,
      reshape: served,
      is_shape_tensor: tensorRtOnly,
      allow_ragged_batch: noRagged,
      optional: refused('ONNX Runtime for Node ignores the value of an input that has a default in the model file'),
      is_non_linear_format_io: tensorRtOnly,
    },
  },
  ModelOutput: {
    fields: {
      name: served,
      data_type: served,
      dims: served,
      label_filename: served,
      reshape: served,
      is_shape_tensor: tensorRtOnly,
      is_non_linear_format_io: tensorRtOnly,
    },
  },
  BatchInput: noRagged,
  BatchOutput: noRagged,
  ModelVersionPolicy: { fields: { latest: served, all: served, specific: served } },
  'ModelVersionPolicy.Latest': { fields: { num_versions: served } },
  'ModelVersionPolicy.All': { fields: {} },
  'ModelVersionPolicy.Specific': { fields: { versions: served } },
  ModelOptimizationPolicy: {
    fields: {
      graph: served,
      priority: hint('models have no priority over each other on a device'),
      cuda: noBinding,
      execution_accelerators: served,
      input_pinned_memory: noBinding,
      output_pinned_memory: noBinding,
      gather_kernel_buffer_threshold: noBinding,
      eager_batching: hint('the next batch is always prepared while one runs'),
    },
  },
  'ModelOptimizationPolicy.Graph': { fields: { level: served } },
  'ModelOptimizationPolicy.Cuda': noBinding,
  'ModelOptimizationPolicy.Cuda.GraphSpec': noBinding,
  'ModelOptimizationPolicy.Cuda.GraphSpec.Shape': noBinding,
  'ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound': noBinding,
  'ModelOptimizationPolicy.ExecutionAccelerators': {
    fields: {
      gpu_execution_accelerator: served,
      cpu_execution_accelerator: noOtherProvider,
    },
  },
  'ModelOptimizationPolicy.ExecutionAccelerators.Accelerator': { fields: { name: served, parameters: served } },
  'ModelOptimizationPolicy.PinnedMemoryBuffer': noBinding,
  ModelQueuePolicy: {
    fields: { timeout_action: served, default_timeout_microseconds: served, allow_timeout_override: served, max_queue_size: served },
  },
  ModelDynamicBatching: {
    fields: {
      preferred_batch_size: served,
      max_queue_delay_microseconds: served,
      preserve_ordering: served,
      priority_levels: served,
      default_priority_level: served,
      default_queue_policy: served,
      priority_queue_policy: served,
    },
  },
  ModelSequenceBatching: noSequences,
  'ModelSequenceBatching.Control': noSequences,
  'ModelSequenceBatching.ControlInput': noSequences,
  'ModelSequenceBatching.InitialState': noSequences,
  'ModelSequenceBatching.State': noSequences,
  'ModelSequenceBatching.StrategyDirect': noSequences,
  'ModelSequenceBatching.StrategyOldest': noSequences,
  ModelEnsembling: noEnsembles,
  'ModelEnsembling.Step': noEnsembles,
  ModelParameter: { fields: { string_value: served } },
  ModelWarmup: { fields: { name: served, batch_size: served, inputs: served, count: served } },
  'ModelWarmup.Input': {
    fields: { data_type: served, dims: served, zero_data: served, random_data: served, input_data_file: served },
  },
  ModelOperations: refused('custom operator libraries are not loaded'),
  ModelTransactionPolicy: { fields: { decoupled: refused('decoupled models are not served') } },
  ModelRepositoryAgents: noAgents,
  'ModelRepositoryAgents.Agent': noAgents,
  ModelResponseCache: { fields: { enable: refused('the response cache is not served') } },
  ModelMetrics: hint('the histograms have fixed buckets'),
  'ModelMetrics.MetricControl': hint('the histograms have fixed buckets'),
  'ModelMetrics.MetricControl.MetricIdentifier': hint('the histograms have fixed buckets'),
  'ModelMetrics.MetricControl.HistogramOptions': hint('the histograms have fixed buckets'),
};

/** The rule of a field. @param message name without the package @throws Error for a field without an entry */
export function fieldRule(message: string, field: string): FieldRule {
  const rules = FIELD_TABLE[message];
  if (rules?.rule !== undefined) return rules;
  const rule = rules?.fields[field];
  if (rule === undefined) throw new Error(`no rule for model configuration field ${message}.${field}`);
  return rule;
}
