// Every field of the schema has a rule, no rule is for a field that is gone, and each refused field keeps a model from loading by name.
import { describe, expect, test } from '@jest/globals';
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { fromText } from '@bufbuild/protobuf/txtpb';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import { checkFields, messageName } from './field-check.js';
import { FIELD_TABLE, fieldRule } from './field-table.js';
import { IssueList } from './issue.js';

/** The root message and all that can stand below it. */
function allMessages(): DescMessage[] {
  const found = new Set<DescMessage>([ModelConfigSchema]);
  for (const message of found) {
    for (const field of message.fields) if (field.message !== undefined) found.add(field.message);
  }
  return [...found];
}

const fields = allMessages().flatMap((message): [DescMessage, DescField][] => message.fields.map((field) => [message, field]));

describe('field table', () => {
  test('the walk over the schema sees the known depth of it', () => {
    expect(allMessages().length).toBeGreaterThan(40);
    expect(fields.length).toBeGreaterThan(130);
  });

  test.each(fields.map(([message, field]): [string, DescMessage, DescField] => [`${messageName(message)}.${field.name}`, message, field]))(
    'has a rule for %s',
    (_name, message, field) => {
      const rule = fieldRule(messageName(message), field.name);
      expect(['served', 'hint', 'refused']).toContain(rule.rule);
      if (rule.rule !== 'served') expect(rule.why).not.toBe('');
    },
  );

  test('has no rule for what the schema does not have', () => {
    const messages = new Map(allMessages().map((message) => [messageName(message), message]));
    for (const [name, rules] of Object.entries(FIELD_TABLE)) {
      const message = messages.get(name);
      expect([name, message !== undefined]).toEqual([name, true]);
      const named = 'fields' in rules ? Object.keys(rules.fields) : [];
      expect(message?.fields.map((field) => field.name)).toEqual(expect.arrayContaining(named));
    }
  });

  test('a field without a rule is an error, not silence', () => {
    expect(() => fieldRule('ModelConfig', 'brand_new')).toThrow('no rule for model configuration field ModelConfig.brand_new');
    expect(() => fieldRule('BrandNew', 'x')).toThrow(/BrandNew.x/);
  });
});

describe('checkFields', () => {
  const check = (text: string) => {
    const issues = new IssueList();
    const warnings = checkFields(fromText(ModelConfigSchema, text), 'm', issues);
    return { issues: issues.issues, warnings };
  };

  test.each([
    ['sequence_batching { }', 'sequence_batching'],
    ['ensemble_scheduling { }', 'ensemble_scheduling'],
    ['model_transaction_policy { decoupled: true }', 'model_transaction_policy.decoupled'],
    ['response_cache { enable: true }', 'response_cache.enable'],
    ['input { name: "a" } input { name: "b" allow_ragged_batch: true }', 'input[1].allow_ragged_batch'],
    ['input { optional: true }', 'input[0].optional'],
    ['input { is_shape_tensor: true }', 'input[0].is_shape_tensor'],
    ['output { is_non_linear_format_io: true }', 'output[0].is_non_linear_format_io'],
    ['batch_input { }', 'batch_input'],
    ['batch_output { }', 'batch_output'],
    ['model_repository_agents { }', 'model_repository_agents'],
    ['model_operations { op_library_filename: "x.so" }', 'model_operations'],
    ['runtime: "x"', 'runtime'],
    ['instance_group { profile: "1" }', 'instance_group[0].profile'],
    ['instance_group { rate_limiter { } }', 'instance_group[0].rate_limiter'],
    ['instance_group { secondary_devices { } }', 'instance_group[0].secondary_devices'],
    ['optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }',
      'optimization.execution_accelerators.cpu_execution_accelerator'],
  ])('%s is refused by name', (text, path) => {
    const { issues } = check(text);
    expect(issues.map((issue) => issue.path)).toEqual([path]);
    expect(issues[0]?.message).toContain(`'${path}' is not served for model 'm': `);
  }); // prettier-ignore

  test.each([
    ['optimization { cuda { graphs: true } }', 'optimization.cuda'],
    ['optimization { priority: PRIORITY_MAX }', 'optimization.priority'],
    ['optimization { eager_batching: true }', 'optimization.eager_batching'],
    ['optimization { input_pinned_memory { enable: false } }', 'optimization.input_pinned_memory'],
    ['optimization { gather_kernel_buffer_threshold: 8 }', 'optimization.gather_kernel_buffer_threshold'],
    ['cc_model_filenames { key: "7.5" value: "x" }', 'cc_model_filenames'],
    ['model_metrics { }', 'model_metrics'],
    ['instance_group { host_policy: "p" }', 'instance_group[0].host_policy'],
  ])('%s is accepted with one warning', (text, path) => {
    const { issues, warnings } = check(text);
    expect(issues).toEqual([]);
    expect(warnings.map((warning) => warning.path)).toEqual([path]);
  });

  test('a refused field that is off is no issue', () => {
    expect(check('model_transaction_policy { decoupled: false } response_cache { enable: false }')).toEqual({ issues: [], warnings: [] });
  });
});
