/**
 * Fetches the inputs that stayed with their gateways, for one batch. A pull that fails costs its own request: the rest of
 * the batch goes on without it.
 */
import { formatShape, type Tensor } from '@paceline/tensor';
import { ServingError, toServingError, type RequestRef } from '@paceline/protocol';
import type { Batch, BatchMember } from '@paceline/worker-rpc';

export interface Pulled {
  /** The batch of those whose inputs are here; undefined = none is left. */
  readonly batch: Batch | undefined;
  readonly failed: readonly { readonly member: BatchMember; readonly error: ServingError }[];
}

export function hasHeldInputs(batch: Batch): boolean {
  return batch.members.some(({ heldBytes }) => heldBytes !== undefined);
}

/** Never rejects. */
export async function pullInputs(batch: Batch, pull: (ref: RequestRef) => Promise<readonly Tensor[]>): Promise<Pulled> {
  const pulled = await Promise.all(batch.members.map((member) => pullMember(member, pull)));
  const failed = pulled.flatMap((result, i) => (result instanceof ServingError ? [{ member: batch.members[i]!, error: result }] : []));
  if (failed.length === 0) return { batch: { ...batch, members: pulled as BatchMember[] }, failed };
  const members = pulled.filter((result): result is BatchMember => !(result instanceof ServingError));
  const rows = members.reduce((sum, member) => sum + member.rows, 0);
  return { batch: members.length > 0 ? { ...batch, members, rows } : undefined, failed };
}

async function pullMember(member: BatchMember, pull: (ref: RequestRef) => Promise<readonly Tensor[]>): Promise<BatchMember | ServingError> {
  const { heldBytes, ...rest } = member;
  if (heldBytes === undefined) return member;
  try {
    const inputs = await pull(member.ref);
    return unlike(member.inputs, inputs) ?? { ...rest, inputs };
  } catch (error) {
    return toServingError(error);
  }
}

/** Why what came is not what was announced: it would be laid between the rows of others. */
function unlike(announced: readonly Tensor[], came: readonly Tensor[]): ServingError | undefined {
  const text = (tensors: readonly Tensor[]): string => tensors.map((t) => `${t.name} ${t.datatype} ${formatShape(t.shape)}`).join(', ');
  const [expected, found] = [text(announced), text(came)];
  if (expected === found) return undefined;
  return new ServingError('INTERNAL', `the gateway announced the inputs ${expected} and sent ${found}`, { reason: 'pull_mismatch' });
}
