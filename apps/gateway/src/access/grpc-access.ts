/**
 * Puts the access policy in front of every gRPC method, before a byte of a message is decoded. Handlers ask the grant about
 * models themselves, since only they read which one a message names.
 */
import type { Metadata, ServerDuplexStream, ServerUnaryCall } from '@grpc/grpc-js';
import { toServingError } from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';
import type { ManagementCaller } from '../control/management-access.js';
import type { AccessPolicy } from './access-policy.js';
import type { Action } from './actions.js';
import { writeAudit } from './audit.js';
import type { Grant } from './grant.js';
import type { HeaderOf } from './restricted-apis.js';

type Call = Pick<ServerUnaryCall<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>, 'metadata' | 'getPeer' | 'getHost'>;

/** Metadata that came several times counts as one text, so that no second key rides along. */
export const headerOf =
  (metadata: Metadata): HeaderOf =>
  (name) => {
    const values = metadata.get(name);
    return values.length === 0 ? undefined : values.join(', ');
  };

/** Address without port. */
function addressOf(call: Call): string {
  return call.getPeer().replace(/:\d+$/, '');
}

function managementCaller(call: Call): ManagementCaller {
  const { metadata } = call;
  return {
    remoteAddress: addressOf(call),
    host: call.getHost(),
    origin: headerOf(metadata)('origin'),
    headerNames: Object.keys(metadata.getMap()),
  };
}

/**
 * Admits a call. @param action undefined = a method that is not in the table of actions
 * @throws ServingError, see {@link AccessPolicy}
 */
export function admitCall(access: AccessPolicy, action: Action | undefined, call: Call): Grant {
  const grant = access.authorize('grpc', action, headerOf(call.metadata));
  if (action?.manages) access.requireManagement(grant, managementCaller(call));
  return grant;
}

/** Runs what changes the server and writes down who asked for it and what became of it. */
export async function audited<Result>(
  {
    logger,
    action,
    call,
    who,
    target,
  }: { logger: Logger; action: Action | undefined; call: Call; who: () => string; target: () => string },
  work: () => Result | Promise<Result>,
): Promise<Result> {
  const event = () => ({ action: action?.name ?? '', who: who(), peer: addressOf(call), target: target() });
  try {
    const result = await work();
    writeAudit(logger, { ...event(), outcome: 'ok', detail: 'OK' });
    return result;
  } catch (error) {
    const { code } = toServingError(error);
    const refused = code === 'PERMISSION_DENIED' || code === 'UNAUTHENTICATED' || code === 'RESOURCE_EXHAUSTED';
    writeAudit(logger, { ...event(), outcome: refused ? 'refused' : 'failed', detail: code });
    throw error;
  }
}
