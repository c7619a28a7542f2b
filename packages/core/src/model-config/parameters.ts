/** Paceline's own keys among the parameters of a model: what they may say, and what they then replace. */
import type { ModelFileDescription } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { ConfigWarning, IssueList } from './issue.js';

/** The latency objective of a model, milliseconds from arrival to reply. */
export const LATENCY_OBJECTIVE = 'latency_objective_ms';
/** Whether each request must get the answer it would get alone. */
export const BATCH_INVARIANT = 'batch_invariant';
/** On how many workers of a cluster the model is loaded at most. */
export const REPLICAS = 'replicas';

const MAX_OBJECTIVE_MS = 3_600_000;
const MAX_REPLICAS = 10_000;

/** Microseconds; undefined where the model has no objective, or one that {@link checkParameters} refuses. */
export function latencyObjectiveUs(config: ModelConfig): number | undefined {
  const text = config.parameters[LATENCY_OBJECTIVE]?.stringValue.trim();
  if (text === undefined || !/^\d+(\.\d+)?$/.test(text)) return undefined;
  const ms = Number(text);
  return ms > 0 && ms <= MAX_OBJECTIVE_MS ? ms * 1000 : undefined;
}

/** Whether the model's requests are to be executed one at a time, so that no answer depends on its batch-mates. */
export function isBatchInvariant(config: ModelConfig): boolean {
  return config.parameters[BATCH_INVARIANT]?.stringValue.trim() === 'true';
}

/** From 1; undefined where the model does not say, or says what {@link checkParameters} refuses. */
export function replicasOf(config: ModelConfig): number | undefined {
  const text = config.parameters[REPLICAS]?.stringValue.trim();
  if (text === undefined || !/^\d{1,5}$/.test(text)) return undefined;
  const replicas = Number(text);
  return replicas >= 1 && replicas <= MAX_REPLICAS ? replicas : undefined;
}

/** Operators that choose the scale of their result by the whole batch: a row's answer then depends on its neighbours. */
const BATCH_DEPENDENT = ['DynamicQuantizeLinear', 'DynamicQuantizeMatMul', 'DynamicQuantizeLSTM'];

/** @returns a warning where requests that share a batch can change each other's answers */
export function checkBatchDependence(config: ModelConfig, file: ModelFileDescription): ConfigWarning[] {
  if (config.schedulingChoice.case !== 'dynamicBatching' || config.maxBatchSize <= 1 || isBatchInvariant(config)) return [];
  const operators = BATCH_DEPENDENT.filter((operator) => file.operators.includes(operator));
  if (operators.length === 0) return [];
  return [
    {
      path: 'dynamic_batching',
      message:
        `model '${config.name}' quantises activations over the whole batch (${operators.join(', ')}), so that an answer can depend slightly on the requests ` +
        `it shares a batch with; parameters { key: "${BATCH_INVARIANT}" value { string_value: "true" } } runs each request alone instead`,
    },
  ];
}

const at = (key: string): string => `parameters["${key}"]`;

/** Refuses values that say nothing; @returns what is replaced by the ones that do */
export function checkParameters(config: ModelConfig, issues: IssueList): ConfigWarning[] {
  const warnings: ConfigWarning[] = [];
  const { name, parameters } = config;
  const objective = parameters[LATENCY_OBJECTIVE];
  if (objective !== undefined && latencyObjectiveUs(config) === undefined) {
    issues.add(at(LATENCY_OBJECTIVE),
      `parameter '${LATENCY_OBJECTIVE}' of model '${name}' must be a number of milliseconds above 0 and at most ${MAX_OBJECTIVE_MS}, got '${objective.stringValue}'`,
      'write e.g. value { string_value: "40" }'); // prettier-ignore
  }
  const invariant = parameters[BATCH_INVARIANT];
  if (invariant !== undefined && !/^\s*(true|false)\s*$/.test(invariant.stringValue)) {
    issues.add(
      at(BATCH_INVARIANT),
      `parameter '${BATCH_INVARIANT}' of model '${name}' must be 'true' or 'false', got '${invariant.stringValue}'`,
    );
  }
  const replicas = parameters[REPLICAS];
  if (replicas !== undefined && replicasOf(config) === undefined) {
    issues.add(
      at(REPLICAS),
      `parameter '${REPLICAS}' of model '${name}' must be a whole number of workers from 1 to ${MAX_REPLICAS}, got '${replicas.stringValue}'`,
      'write e.g. value { string_value: "2" }, or leave it out for every worker',
    );
  }
  const dynamic = config.schedulingChoice.case === 'dynamicBatching' ? config.schedulingChoice.value : undefined;
  if (dynamic === undefined) return warnings;
  const replaced = (field: string, by: string): void =>
    void warnings.push({
      path: `dynamic_batching.${field}`,
      message: `'${field}' of model '${name}' is not used, because parameter '${by}' decides when batches start`,
    });
  const by = isBatchInvariant(config) ? BATCH_INVARIANT : latencyObjectiveUs(config) === undefined ? undefined : LATENCY_OBJECTIVE;
  if (by === undefined) return warnings;
  if (dynamic.maxQueueDelayMicroseconds > 0n) replaced('max_queue_delay_microseconds', by);
  const { preferredBatchSize } = dynamic;
  if (preferredBatchSize.length > 0 && (preferredBatchSize.length > 1 || preferredBatchSize[0] !== config.maxBatchSize))
    replaced('preferred_batch_size', by);
  return warnings;
}
