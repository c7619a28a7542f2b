/**
 * Reads config.pbtxt. The protobuf library decides whether the text is right; when it is not, the faults carry their
 * place. A text that parses can still be asked where any of its fields stands, for what is judged later.
 */
import { fromText } from '@bufbuild/protobuf/txtpb';
import { ServingError } from '@paceline/protocol';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';
import { locateText, type TextFault } from './locate.js';
import type { Place } from './tokens.js';

/** Largest configuration, bytes: thousands of times what any has. */
export const MAX_CONFIG_BYTES = 4 * 1024 * 1024;

export interface ConfigText {
  readonly config: ModelConfig;
  /** How messages call the file, e.g. `resnet/config.pbtxt`. */
  readonly file: string;
  /** Where the field of that path stands, or else the nearest thing around it; undefined for "" and for what is not there. */
  locate(path: string): Place | undefined;
  /** Whether the text states the field, be it with its default value. */
  states(path: string): boolean;
}

/** A text that is no configuration. Its message has one line a fault. */
export class ConfigSyntaxError extends ServingError {
  /**
   * @param file how messages call it
   * @param faults in the order of the text; empty where only the protobuf library found something, see the message
   */
  constructor(
    readonly file: string,
    readonly faults: readonly TextFault[],
    cause: unknown,
  ) {
    const lines = faults.map((fault) => formatFault(file, fault));
    // The library may refuse what the locator, which only looks for places, lets pass.
    if (lines.length === 0) lines.push(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`);
    super('INVALID_ARGUMENT', lines.join('\n'), { reason: 'config_syntax', cause });
  }
}

/** `resnet/config.pbtxt:3:17: input[0].data_type: expected one of ..., found 'TYPE_FP33' (did you mean TYPE_FP32?)` */
function formatFault(file: string, fault: TextFault): string {
  const subject = fault.path === '' ? '' : ` ${fault.path}:`;
  const hint = fault.hint === undefined ? '' : ` (${fault.hint})`;
  return `${file}:${fault.line}:${fault.column}:${subject} expected ${fault.expected}, found ${fault.found}${hint}`;
}

/** The path without its last step: `a[0].b` → `a[0]` → `a` → "". */
function parentPath(path: string): string {
  const match = /^(.*?)(?:\.?[A-Za-z_]\w*|\[[^\]]*\])$/s.exec(path);
  return match?.[1] ?? '';
}

/**
 * @param file how messages call it; not a path of this machine
 * @throws ConfigSyntaxError with every fault
 */
export function parseConfigText(text: string, file: string): ConfigText {
  const located = locateText(ModelConfigSchema, text);
  let config: ModelConfig;
  try {
    config = fromText(ModelConfigSchema, text);
  } catch (error) {
    throw new ConfigSyntaxError(file, located.faults, error);
  }
  return {
    config,
    file,
    locate(path) {
      for (let at = path; at !== ''; at = parentPath(at)) {
        const place = located.places.get(at);
        if (place !== undefined) return { line: place.line, column: place.column };
      }
      return undefined;
    },
    states: (path) => located.places.has(path),
  };
}
