/**
 * Writes the field table as the page of the documentation that users read. The page is made from the table and the
 * schema alone, and a test compares the two, so that it cannot say something else than the server does.
 */
import { ScalarType, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import { messageName } from '../field-check.js';
import { fieldRule, type FieldRule } from '../field-table.js';
import { SIMULATED_PARAMETERS, simulatedRange, type SimulatedParameter } from '../simulated.js';

const INTRODUCTION = `# Model configuration

Every message and field of a model configuration (\`config.pbtxt\`, or the JSON of a load request), and what becomes of it.
This page is generated from the table that the server itself goes by: \`node packages/core/scripts/write-field-page.mjs\`.

- **served**: it does what Triton's documentation says; differences stand in [the list of differences](differences-from-triton.md).
- **hint**: accepted, with one warning when the model is loaded. Neither answers nor scheduling depend on it.
- **refused**: a model that sets it is not loaded, and the message names the field. Answers or scheduling would not be what
  the configuration says.

A refused field that has its default value, e.g. \`response_cache { enable: false }\`, is no fault.
\`paceline check DIR\` prints the faults and warnings of a whole repository with file, line and column.

## Parameters

Keys of \`parameters\` that mean something to Paceline itself; a value that says nothing keeps the model from loading.

- \`latency_objective_ms\`: milliseconds from arrival to reply, above 0; batches then follow it instead of the dynamic batcher's delay.
- \`batch_invariant\`: \`true\` runs each request alone, so that no answer depends on its batch-mates.
- \`replicas\`: on how many workers of a cluster the model is loaded at most, from 1 to 10000; without it every worker that
  has its devices and the memory for it.

## Instance groups

- \`KIND_CPU\`: \`count\` instances on the processor; without a count two, or one on a single core.
- \`KIND_GPU\`: \`count\` instances (one without a count) on each GPU of \`gpus\`, on every GPU where none is listed. GPUs are
  numbered as CUDA numbers them after \`CUDA_VISIBLE_DEVICES\`, in the order of \`nvidia-smi\`.
- \`KIND_AUTO\`, and no kind: \`KIND_GPU\` where there is a GPU or \`gpus\` lists one, else \`KIND_CPU\`. In a cluster every worker
  decides for its own devices, so that the configuration shows \`KIND_AUTO\`; what should not depend on that names its kind.
- \`KIND_MODEL\`: ONNX Runtime chooses, and takes the processor.

On a GPU an ONNX model runs with the CUDA provider, with
\`optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }\` with TensorRT before it.
ONNX Runtime for Node takes no option of a provider but the number of the GPU. Options that would change answers or bound
memory are therefore refused by name on a GPU: parameter \`gpu_mem_limit\`, and every parameter of the accelerator but
\`precision_mode: FP32\`. Options of speed (\`cudnn_conv_algo_search\`, \`cudnn_conv_use_max_workspace\`, \`arena_extend_strategy\`,
\`do_copy_in_default_stream\`) are accepted with a warning. See [GPUs](getting-started.md#gpus) for what a machine needs.
`;

function allMessages(messages: readonly DescMessage[]): DescMessage[] {
  return messages.flatMap((message) => [message, ...allMessages(message.nestedMessages.filter((nested) => !isMapEntry(nested)))]);
}

const isMapEntry = (message: DescMessage): boolean => message.proto.options?.mapEntry === true;

function typeOf(field: DescField): string {
  const single = (scalar: ScalarType | undefined, named: { readonly typeName: string } | undefined): string =>
    scalar === undefined ? (named?.typeName.replace(/^inference\./, '') ?? '') : (ScalarType[scalar] ?? '').toLowerCase();
  switch (field.fieldKind) {
    case 'map':
      return `map<${single(field.mapKey, undefined)}, ${single(field.scalar, field.message ?? field.enum)}>`;
    case 'list':
      return `repeated ${single(field.scalar, field.message ?? field.enum)}`;
    default:
      return single(field.scalar, field.message ?? field.enum);
  }
}

function row(message: DescMessage, field: DescField): string[] {
  const rule: FieldRule = fieldRule(messageName(message), field.name);
  return [
    `\`${field.name}\``,
    `\`${typeOf(field)}\``,
    rule.rule === 'served' ? 'served' : `**${rule.rule}**`,
    rule.rule === 'served' ? '' : rule.why,
  ];
}

function table(message: DescMessage): string {
  if (message.fields.length === 0) return 'It has no fields.';
  return layOut([['field', 'type', 'what happens', 'why'], ...message.fields.map((field) => row(message, field))]);
}

/** @param rows the first one is the head; four cells each */
function layOut(rows: readonly (readonly string[])[]): string {
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0), 3));
  const line = (cells: readonly string[]): string => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  const [head = [], ...body] = rows;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n');
}

const SIMULATED = `## The simulated accelerator

\`backend: "simulated"\` serves a model that takes time instead of computing: for rehearsing capacity and testing scale
without the hardware. It needs no model file, so that its version folder may be empty; inputs and outputs must be in the
configuration. An output repeats the input of its data type and number of elements (the first that no output before it
repeats, BYTES too); where there is none it is zeros, or empty elements. Everything else is as with any model: queue,
dynamic batcher, watchdog, restarts. It runs in the same kind of process, which waits instead of computing and takes
next to no processor time.

Each instance is an accelerator of its own, in a process of its own, that runs one batch after the other; \`count: 4\` is
four accelerators. With \`--simulated-gpus\` of a worker, \`kind: KIND_GPU\` puts them on simulated GPUs, which all models
share as they would share real ones. Without \`instance_group\` there is one. At most about \`max_batch_size\` / (alpha + beta x
\`max_batch_size\`) rows a second pass one accelerator: with alpha 40 ms, beta 1 ms and batches of 8, 167. The parameters
are strings, e.g. \`parameters { key: "simulated_alpha_ms" value { string_value: "40" } }\`; faults strike warmup samples
as well.

`;

function simulatedSection(): string {
  const keys = Object.keys(SIMULATED_PARAMETERS) as SimulatedParameter[];
  const rows = keys.map((key) => {
    const { meaning, fallback } = SIMULATED_PARAMETERS[key];
    return [`\`${key}\``, simulatedRange(key), fallback, meaning];
  });
  return `${SIMULATED}${layOut([['parameter', 'value', 'default', 'meaning'], ...rows])}\n`;
}

/** The whole page, with a line end at its end. */
export function fieldPage(): string {
  const messages = allMessages(ModelConfigSchema.file.messages);
  const root = messages.filter((message) => messageName(message) === 'ModelConfig');
  const rest = messages.filter((message) => messageName(message) !== 'ModelConfig');
  const sections = [...root, ...rest].map((message) => `## ${messageName(message)}\n\n${table(message)}\n`);
  return `${[INTRODUCTION, ...sections, simulatedSection()].join('\n')}`;
}
