/** `host:port` as membership carries it, and what may go unprotected: without a cluster secret, loopback alone. */
import { isIPv6 } from 'node:net';
import { ServingError } from '@paceline/protocol';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** @throws ServingError INVALID_ARGUMENT for anything but `host:port` or `[v6]:port` */
export function parseAddress(address: string): HostPort {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port < 1 || port > 65535) {
    throw new ServingError('INVALID_ARGUMENT', `expected an address of the form host:port, found '${address}'`, { reason: 'bad_address' });
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

export function formatAddress(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);
}

/** @throws ServingError FAILED_PRECONDITION (`cluster_secret_missing`) when strangers could reach `host` and there is no secret */
export function requireSecret(secret: Uint8Array | undefined, host: string): void {
  if (secret !== undefined || isLoopback(host)) return;
  throw new ServingError('FAILED_PRECONDITION', `a cluster secret is required where processes meet at '${host}', which is not loopback`, {
    reason: 'cluster_secret_missing',
  });
}
