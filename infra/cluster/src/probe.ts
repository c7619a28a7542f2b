/** Knocks at the door of a process to find out whether it serves. */
import { get } from 'node:http';
import { connect } from 'node:net';

export type Probe =
  | { readonly kind: 'http'; readonly host: string; readonly port: number; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

const LIMIT_MS = 1000;

/** Never rejects. */
export function answers(probe: Probe): Promise<boolean> {
  return new Promise((resolve) => {
    const no = (): void => resolve(false);
    if (probe.kind === 'tcp') {
      const socket = connect({ host: probe.host, port: probe.port, timeout: LIMIT_MS });
      socket.once('connect', () => (socket.destroy(), resolve(true)));
      socket.once('timeout', () => (socket.destroy(), no()));
      socket.once('error', no);
      return;
    }
    const request = get({ host: probe.host, port: probe.port, path: probe.path, timeout: LIMIT_MS, agent: false }, (response) => {
      response.resume();
      // Where health needs a key, being asked for it is all that can be had.
      resolve([200, 401, 403].includes(response.statusCode ?? 0));
    });
    request.once('timeout', () => (request.destroy(), no()));
    request.once('error', no);
  });
}
