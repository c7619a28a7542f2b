/**
 * Who may change what is served: only a client on this machine that talks to the server directly. A forwarding proxy or a
 * web page in a local browser also arrives from a loopback address, hence the checks of Host, Origin and forwarding headers.
 */
import { ServingError } from '@paceline/protocol';

export interface ManagementCaller {
  readonly remoteAddress: string | undefined;
  /** The Host header or :authority. */
  readonly host: string | undefined;
  /** Names of all headers, lower case. */
  readonly headerNames: readonly string[];
}

function isLoopbackAddress(address: string): boolean {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return plain === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(plain);
}

/** `host` may carry a port; IPv6 stands in brackets. */
function isLoopbackHost(host: string): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(host)?.[1];
  if (name === undefined) return false;
  return name.toLowerCase() === 'localhost' || isLoopbackAddress(name.replace(/^\[(.*)\]$/, '$1'));
}

const isForwarding = (name: string): boolean => name === 'origin' || name === 'forwarded' || name.startsWith('x-forwarded-');

/** @throws ServingError PERMISSION_DENIED with what stands against it. */
export function requireManagementAccess(caller: ManagementCaller): void {
  const objection = objectionTo(caller);
  if (objection === undefined) return;
  throw new ServingError(
    'PERMISSION_DENIED',
    `model control is open only to clients on the server's own machine that call it directly: ${objection}`,
    {
      reason: 'management_not_local',
    },
  );
}

function objectionTo({ remoteAddress, host, headerNames }: ManagementCaller): string | undefined {
  if (remoteAddress === undefined || !isLoopbackAddress(remoteAddress))
    return `this request comes from ${remoteAddress ?? 'an unknown address'}`;
  if (host === undefined || !isLoopbackHost(host))
    return `this request names the host '${host ?? ''}', expected localhost or a loopback address`;
  const forwarding = headerNames.find(isForwarding);
  return forwarding === undefined ? undefined : `this request carries the header '${forwarding}'`;
}
