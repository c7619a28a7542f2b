/** Reads the parameters of a load request: `config`, and `file:<path>` for a model that comes with its files. */
import { ServingError, type LoadParameter } from '@paceline/protocol';
import type { SourceRequest } from './model-source.js';

const FILE = 'file:';

function refuse(message: string): never {
  throw new ServingError('INVALID_ARGUMENT', message, { reason: 'load_parameter' });
}

/** @throws ServingError INVALID_ARGUMENT naming the parameter that is unknown, of the wrong type or alone */
export function readLoadRequest(parameters: Readonly<Record<string, LoadParameter>>): SourceRequest {
  let config: string | undefined;
  const files = new Map<string, Uint8Array>();
  for (const [key, value] of Object.entries(parameters)) {
    if (key === 'config') {
      if (typeof value !== 'string') refuse(`load parameter 'config' must be a string, but it is a ${typeof value}`);
      config = value;
    } else if (key.startsWith(FILE)) {
      if (!(value instanceof Uint8Array)) refuse(`load parameter '${key}' must be the bytes of a file, but it is a ${typeof value}`);
      files.set(key.slice(FILE.length), value);
    } else {
      refuse(`unrecognized load parameter '${key}'.`);
    }
  }
  if (files.size === 0) return config === undefined ? {} : { config };
  if (config === undefined) {
    const [first] = files.keys();
    refuse(`load parameter 'file:${first}' needs the parameter 'config' beside it: the files given are all that the model consists of`);
  }
  return { config, files };
}
