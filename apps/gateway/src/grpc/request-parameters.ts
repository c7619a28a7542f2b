/**
 * The request parameters of gRPC: which types the known names take, and which names are reserved. Integers become bigint,
 * doubles number, so that nothing is lost on the way to whoever reads them.
 */
import { ServingError, type Parameters, type ParameterValue, type WireParameters } from '@paceline/protocol';

const NONE: Parameters = Object.freeze({});

/** Asks for a last response without outputs where a decoupled model ends without one. */
export const EMPTY_FINAL_RESPONSE = 'triton_enable_empty_final_response';

type Kind = 'boolean' | 'bigint' | 'string';

const KNOWN: ReadonlyMap<string, { readonly kinds: readonly Kind[]; readonly expected: string }> = new Map([
  ['sequence_id', { kinds: ['bigint', 'string'], expected: 'int64_param or string_param' }],
  ['sequence_start', { kinds: ['boolean'], expected: 'bool_param' }],
  ['sequence_end', { kinds: ['boolean'], expected: 'bool_param' }],
  ['priority', { kinds: ['bigint'], expected: 'int64_param or uint64_param' }],
  ['timeout', { kinds: ['bigint'], expected: 'int64_param' }],
  [EMPTY_FINAL_RESPONSE, { kinds: ['boolean'], expected: 'bool_param' }],
]);

const refuse = (message: string): never => {
  throw new ServingError('INVALID_ARGUMENT', message, { reason: 'invalid_parameter' });
};

/** @throws ServingError INVALID_ARGUMENT for a reserved name, a value of the wrong type, or none. */
export function toParameters(wire: WireParameters): Parameters {
  if (wire.size === 0) return NONE;
  const parameters: Record<string, ParameterValue> = Object.create(null) as Record<string, ParameterValue>;
  for (const [name, value] of wire) {
    const known = KNOWN.get(name);
    if (known) {
      if (!known.kinds.some((kind) => kind === typeof value))
        refuse(`invalid value type for '${name}' parameter, expected ${known.expected}.`);
    } else if (name.startsWith('triton_')) {
      refuse(
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response",
      );
    }
    if (value === undefined)
      return refuse(`invalid value type for '${name}' parameter, expected int64_param, bool_param, or string_param.`);
    // Read by the stream itself; nobody behind it may see a reserved name.
    if (name !== EMPTY_FINAL_RESPONSE) parameters[name] = value;
  }
  return parameters;
}

/** Refuses a tensor that lies in shared memory, which no client of this server can have registered. */
export function refuseSharedMemory(wire: WireParameters, tensor: string): void {
  if (wire.size === 0 || !wire.has('shared_memory_region')) return;
  throw new ServingError(
    'UNIMPLEMENTED',
    `'${tensor}' names a shared memory region, but this server does not serve shared memory: send the data in the request`,
    {
      reason: 'shared_memory',
    },
  );
}
