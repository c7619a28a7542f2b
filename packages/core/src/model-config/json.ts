/**
 * The JSON form of a model configuration, as Triton's config routes write it and its load route reads it: field names
 * of the .proto, every primitive printed, and most 64-bit fields as numbers.
 */
import { fromJson, toJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';

/** Key order of Triton's answer where it is not the order of the field numbers. Keys not listed here follow. */
const KEY_ORDER = [
  'name', 'platform', 'backend', 'runtime', 'version_policy', 'max_batch_size', 'input', 'output', 'batch_input',
  'batch_output', 'optimization', 'dynamic_batching', 'sequence_batching', 'ensemble_scheduling', 'instance_group',
  'default_model_filename', 'cc_model_filenames', 'metric_tags', 'parameters', 'model_warmup',
]; // prettier-ignore

const GROUP_KEY_ORDER = ['name', 'kind', 'count', 'rate_limiter', 'gpus', 'secondary_devices', 'profile', 'passive', 'host_policy'];
const OUTPUT_KEY_ORDER = ['name', 'data_type', 'dims', 'reshape', 'label_filename'];

/** 64-bit fields that Triton rewrites from string to number; `*` stands for any list index or map key. */
const NUMBER_PATHS = [
  'input.*.dims.*',
  'input.*.reshape.shape.*',
  'output.*.dims.*',
  'output.*.reshape.shape.*',
  'version_policy.specific.versions.*',
  'dynamic_batching.max_queue_delay_microseconds',
  'dynamic_batching.priority_levels',
  'dynamic_batching.default_priority_level',
  'dynamic_batching.default_queue_policy.default_timeout_microseconds',
  'dynamic_batching.priority_queue_policy.*.default_timeout_microseconds',
  'sequence_batching.max_sequence_idle_microseconds',
  'sequence_batching.direct.max_queue_delay_microseconds',
  'sequence_batching.oldest.max_queue_delay_microseconds',
  'sequence_batching.state.*.dims.*',
  'ensemble_scheduling.step.*.model_version',
  'model_warmup.*.inputs.*.dims.*',
].map((path) => path.split('.'));

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A copy of `value` with the strings at `path` turned into numbers, where a number can hold them exactly. */
function withNumbers(value: JsonValue, path: readonly string[]): JsonValue {
  const [head, ...rest] = path;
  if (head === undefined) {
    return typeof value === 'string' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }
  if (Array.isArray(value)) return head === '*' ? value.map((item) => withNumbers(item, rest)) : value;
  if (!isObject(value)) return value;
  // fromEntries defines properties, so a map key of `__proto__` stays data.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, head === '*' || head === key ? withNumbers(item, rest) : item]),
  );
}

/**
 * Triton's JSON of a configuration.
 * @returns an object for JSON.stringify; 64-bit values above 2^53 stay decimal strings rather than lose digits.
 */
export function modelConfigToJson(config: ModelConfig): JsonObject {
  let json: JsonValue = toJson(ModelConfigSchema, config, { alwaysEmitImplicit: true, useProtoFieldName: true });
  for (const path of NUMBER_PATHS) json = withNumbers(json, path);
  if (!isObject(json)) return {};
  const ordered = inOrder(json, KEY_ORDER);
  for (const [key, order] of [
    ['instance_group', GROUP_KEY_ORDER],
    ['output', OUTPUT_KEY_ORDER],
  ] as const) {
    const items = ordered[key];
    if (Array.isArray(items)) ordered[key] = items.map((item) => (isObject(item) ? inOrder(item, order) : item));
  }
  return ordered;
}

/** The same object with the keys of `order` first. */
function inOrder(json: JsonObject, order: readonly string[]): JsonObject {
  const ordered: JsonObject = {};
  for (const key of order) {
    const value = json[key];
    if (value !== undefined) ordered[key] = value;
  }
  return { ...ordered, ...json };
}

/**
 * Reads the JSON form, e.g. the `config` parameter of a load.
 * @throws Error saying which field is unknown or malformed; SyntaxError for text that is not JSON.
 */
export function modelConfigFromJson(text: string): ModelConfig {
  const json = JSON.parse(text) as JsonValue;
  if (!isObject(json)) throw new Error('expected a JSON object');
  return fromJson(ModelConfigSchema, json, { ignoreUnknownFields: false });
}

/** Whether the JSON form states a field, by the name of the .proto or its camelCase form. */
export function jsonStates(text: string, protoName: string, jsonName: string): boolean {
  const json = JSON.parse(text) as JsonValue;
  return isObject(json) && (Object.hasOwn(json, protoName) || Object.hasOwn(json, jsonName));
}
