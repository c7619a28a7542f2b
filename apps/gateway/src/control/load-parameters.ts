/** The parameters of a load request, in both protocols' forms, as ModelControl takes them: `config` and `file:<version>/<path>`. */
import { ServingError, type LoadParameter } from '@paceline/protocol';

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const refuse = (message: string): never => {
  throw new ServingError('INVALID_ARGUMENT', message, { reason: 'invalid_load_parameter' });
};

type Decode = (key: string, value: unknown) => LoadParameter;

/**
 * @param decode reads the value of a known key, or throws.
 * @throws ServingError INVALID_ARGUMENT for a key that is no load parameter.
 */
export function readLoadParameters(
  entries: Iterable<readonly [string, unknown]>,
  decode: { readonly config: Decode; readonly file: Decode },
): Record<string, LoadParameter> {
  const parameters: Record<string, LoadParameter> = {};
  for (const [key, value] of entries) {
    if (key === 'config') parameters[key] = decode.config(key, value);
    else if (key.startsWith('file:')) parameters[key] = decode.file(key, value);
    else refuse(`unrecognized load parameter '${key}'.`);
  }
  return parameters;
}

/** Values of the HTTP form: the configuration as a JSON string, files in base64. */
export const jsonLoadValues = {
  config: (key: string, value: unknown): LoadParameter =>
    typeof value === 'string'
      ? value
      : refuse(
          `invalid value type for load parameter '${key}', expected a string that holds the model configuration as JSON, got ${kindOf(value)}.`,
        ),
  file: (key: string, value: unknown): LoadParameter =>
    typeof value === 'string' && BASE64.test(value)
      ? Buffer.from(value, 'base64')
      : refuse(
          `invalid value for load parameter '${key}', expected the file's content in base64${typeof value === 'string' ? '' : `, got ${kindOf(value)}`}.`,
        ),
};

/** How messages name a JSON value's type. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
