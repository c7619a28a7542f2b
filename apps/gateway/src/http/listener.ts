/**
 * The listening socket of the data plane, plain or with TLS. Invariant: `onSocket` sees each accepted connection from its
 * first moment, so that one that never finishes its handshake can be cut; `onReady` sees it when bytes may be read.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type SecureContextOptions } from 'node:tls';
import type { TlsMaterial, TlsSource } from '../access/tls-files.js';

export interface ListenerEvents {
  onSocket(socket: Socket): void;
  onReady(socket: Socket): void;
}

/** A half-closed client counts as gone, but its socket must not end by itself before pending work was cancelled. */
const SOCKETS = { noDelay: true, allowHalfOpen: true } as const;

/** @param handshakeTimeoutS how long a client may take until its first request can be read */
export function createListener(tls: TlsSource | undefined, handshakeTimeoutS: number, events: ListenerEvents): Server {
  if (tls === undefined) {
    return createServer(SOCKETS, (socket) => {
      events.onSocket(socket);
      events.onReady(socket);
    });
  }
  const server = createTlsServer(
    {
      ...SOCKETS,
      ...contextOf(tls.current),
      requestCert: tls.mutual,
      rejectUnauthorized: tls.mutual,
      handshakeTimeout: handshakeTimeoutS * 1000,
      ALPNProtocols: ['http/1.1'],
    },
    (socket) => events.onReady(socket),
  );
  server.on('connection', (socket: Socket) => events.onSocket(socket));
  // Connections that are open keep the certificate they began with.
  const unsubscribe = tls.subscribe((material) => server.setSecureContext(contextOf(material)));
  server.on('close', unsubscribe);
  return server;
}

function contextOf({ cert, key, ca }: TlsMaterial): SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.2', ...(ca && { ca }) };
}
