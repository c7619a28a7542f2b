/**
 * Who may change what is served: only a client on this machine that talks to the server directly. A forwarding proxy or a
 * web page in a local browser also arrives from a loopback address, hence the checks of Host, Origin and forwarding headers.
 */

export interface ManagementCaller {
  readonly remoteAddress: string | undefined;
  /** The Host header or :authority. */
  readonly host: string | undefined;
  /** The Origin header, which web pages send. */
  readonly origin: string | undefined;
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

/** @returns what stands against a caller without a key; undefined for a direct one on this machine */
export function objectionToManagement({ remoteAddress, host, headerNames }: ManagementCaller): string | undefined {
  if (remoteAddress === undefined || !isLoopbackAddress(remoteAddress))
    return `this request comes from ${remoteAddress ?? 'an unknown address'}`;
  if (host === undefined || !isLoopbackHost(host))
    return `this request names the host '${host ?? ''}', expected localhost or a loopback address`;
  const forwarding = headerNames.find(isForwarding);
  return forwarding === undefined ? undefined : `this request carries the header '${forwarding}'`;
}
