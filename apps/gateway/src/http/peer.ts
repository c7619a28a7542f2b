/** How the other end of a connection is written in logs: address and port, as in URLs. */
import type { Socket } from 'node:net';

export function peerOf({ remoteAddress = '', remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
