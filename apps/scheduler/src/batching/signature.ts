/** Whether a request that was validated against one generation of a model can still be served by another. Pure. */
import type { Envelope } from '@paceline/protocol';
import type { LaneSpec } from '../placement/lane-host.js';

/** Why `envelope` does not fit the model of `spec`; undefined = it fits. */
export function unfitFor(envelope: Envelope, spec: LaneSpec): string | undefined {
  const { maxBatchSize } = spec.config;
  if (envelope.rows > Math.max(1, maxBatchSize)) return `inference request batch-size must be <= ${maxBatchSize} for '${spec.model}'`;
  for (const input of spec.inputs) {
    const given = envelope.inputs.find((tensor) => tensor.name === input.name);
    if (!given) {
      if (input.optional) continue;
      return `input '${input.name}' is now required`;
    }
    const shapeFits = given.shape.length === input.shape.length && input.shape.every((dim, i) => dim === -1 || dim === given.shape[i]);
    if (given.datatype !== input.datatype || !shapeFits) {
      return `input '${input.name}' is now ${input.datatype} [${input.shape.join(',')}], got ${given.datatype} [${given.shape.join(',')}]`;
    }
  }
  return undefined;
}
