/**
 * Writes the field table as the page of the documentation that users read. The page is made from the table and the
 * schema alone, and a test compares the two, so that it cannot say something else than the server does.
 */
import { ScalarType, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import { messageName } from '../field-check.js';
import { fieldRule, type FieldRule } from '../field-table.js';

const INTRODUCTION = `# Model configuration

Every message and field of a model configuration (\`config.pbtxt\`, or the JSON of a load request), and what becomes of it.
This page is generated from the table that the server itself goes by: \`node packages/core/scripts/write-field-page.mjs\`.

- **served**: it does what Triton's documentation says; differences stand in [the list of differences](differences-from-triton.md).
- **hint**: accepted, with one warning when the model is loaded. Neither answers nor scheduling depend on it.
- **refused**: a model that sets it is not loaded, and the message names the field. Answers or scheduling would not be what
  the configuration says.

A refused field that has its default value, e.g. \`response_cache { enable: false }\`, is no fault.
\`paceline check DIR\` prints the faults and warnings of a whole repository with file, line and column.
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
  const rows = [['field', 'type', 'what happens', 'why'], ...message.fields.map((field) => row(message, field))];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0), 3));
  const line = (cells: readonly string[]): string => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  const [head = [], ...body] = rows;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n');
}

/** The whole page, with a line end at its end. */
export function fieldPage(): string {
  const messages = allMessages(ModelConfigSchema.file.messages);
  const root = messages.filter((message) => messageName(message) === 'ModelConfig');
  const rest = messages.filter((message) => messageName(message) !== 'ModelConfig');
  const sections = [...root, ...rest].map((message) => `## ${messageName(message)}\n\n${table(message)}\n`);
  return `${[INTRODUCTION, ...sections].join('\n')}`;
}
