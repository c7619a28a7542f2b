/** Walks a configuration as its author wrote it and applies the field table to every field that is set. */
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { reflect, type ReflectMessage } from '@bufbuild/protobuf/reflect';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';
import { fieldRule } from './field-table.js';
import type { ConfigWarning, IssueList } from './issue.js';

/** Name of a message inside its package: `ModelInstanceGroup.SecondaryDevice`. */
export function messageName(message: DescMessage): string {
  const prefix = message.file.proto.package === '' ? '' : `${message.file.proto.package}.`;
  return message.typeName.slice(prefix.length);
}

/** The messages inside a set field, each with its path. */
function nestedMessages(parent: ReflectMessage, field: DescField, path: string): [string, ReflectMessage][] {
  switch (field.fieldKind) {
    case 'message':
      return [[path, parent.get(field)]];
    case 'list': {
      if (field.listKind !== 'message') return [];
      const found: [string, ReflectMessage][] = [];
      for (const item of parent.get(field)) found.push([`${path}[${found.length}]`, item as ReflectMessage]);
      return found;
    }
    case 'map': {
      if (field.mapKind !== 'message') return [];
      return [...parent.get(field).entries()].map(([key, item]) => [`${path}["${String(key)}"]`, item as ReflectMessage]);
    }
    default:
      return [];
  }
}

/**
 * Adds an issue for every set field that is refused.
 * @param config before normalisation, so that filled-in defaults raise no warning
 * @returns the warnings, one a field
 */
export function checkFields(config: ModelConfig, model: string, issues: IssueList): ConfigWarning[] {
  const warnings: ConfigWarning[] = [];
  const visit = (message: ReflectMessage, prefix: string): void => {
    for (const field of message.fields) {
      if (!message.isSet(field)) continue;
      const path = `${prefix}${field.name}`;
      const rule = fieldRule(messageName(message.desc), field.name);
      if (rule.rule === 'refused') {
        issues.add(path, `'${path}' is not served for model '${model}': ${rule.why}`);
      } else if (rule.rule === 'hint') {
        warnings.push({ path, message: `'${path}' has no effect for model '${model}': ${rule.why}` });
      } else {
        for (const [nestedPath, nested] of nestedMessages(message, field, path)) visit(nested, `${nestedPath}.`);
      }
    }
  };
  visit(reflect(ModelConfigSchema, config), '');
  return warnings;
}
