/**
 * The listening end: takes connections, lets those in that prove themselves, and joins each to the session that it
 * continues. Strangers are bounded in number, bytes and time. What is to be sent to a session is kept for some seconds
 * after it went down, since the other side may not have noticed; what arrived from it stays known for much longer, so that
 * nothing is delivered twice when it comes back.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Timer } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import { requireSecret, type HostPort } from './address.js';
import { Connection, type ConnectionListener } from './connection.js';
import { FrameError } from './frames.js';
import { Handshake, HandshakeError, randomId, type LinkIdentity } from './handshake.js';
import { PeerState, type LinkPeer, type PeerListener } from './link-peer.js';
import { OUTBOX_LIMIT_BYTES, RECONNECT_GRACE_MS, type LinkListener, type LinkOptions } from './options.js';

/** Connections that have not proved themselves, at most. */
const STRANGERS_MAX = 64;
/** Whoever is down for longer has given up waiting for what is kept here. */
const KEEP_MS = 10_000;
/** Sessions that are down and remembered, at most. */
const REMEMBERED_MAX = 1024;

interface Session {
  readonly peer: PeerState;
  up: boolean;
  /** While it is cut: until it is down, then until what is kept for it is given up. */
  timer: Timer | undefined;
}

export class LinkServer implements PeerListener {
  readonly #session = randomId();
  /** By session of the other side. */
  readonly #sessions = new Map<string, Session>();
  readonly #strangers = new Set<Connection>();
  #server: Server | undefined;
  #closing = false;

  constructor(
    private readonly options: LinkOptions,
    private readonly listener: LinkListener,
  ) {}

  /** Those that are up. */
  get peers(): readonly LinkPeer[] {
    return [...this.#sessions.values()].filter(({ up }) => up).map(({ peer }) => peer);
  }

  /** @throws ServingError FAILED_PRECONDITION without a secret beyond loopback, UNAVAILABLE when the address is not free */
  async listen(host: string, port: number): Promise<HostPort> {
    const { secret, tls } = this.options;
    requireSecret(secret, host);
    const accept = (socket: Socket): void => this.#accept(socket);
    const server: Server = tls
      ? createTlsServer(
          { cert: tls.certificate, key: tls.key, ca: tls.ca, requestCert: tls.ca !== undefined, rejectUnauthorized: true },
          accept,
        )
      : createServer(accept);
    this.#server = server;
    server.on('tlsClientError', (error: Error) => this.#problem(`a connection without a valid certificate: ${error.message}`));
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => {
        reject(new ServingError('UNAVAILABLE', `cannot listen on ${host}:${port}: ${error.message}`, { reason: 'link_port_unavailable' }));
      });
      server.listen(port, host, resolve);
    });
    server.on('error', (error) => this.#problem(`link port: ${error.message}`));
    const bound = server.address() as AddressInfo;
    return { host, port: bound.port };
  }

  /** Says goodbye to everybody; resolves when the port is free. */
  async close(): Promise<void> {
    this.#closing = true;
    const server = this.#server;
    const closed = new Promise<void>((resolve) => (server?.listening ? server.close(() => resolve()) : resolve()));
    for (const stranger of this.#strangers) stranger.cut('closing');
    for (const session of this.#sessions.values()) {
      session.timer?.cancel();
      session.peer.leave();
    }
    this.#sessions.clear();
    await closed;
  }

  onReady(peer: PeerState): void {
    const session = this.#sessions.get(peer.identity.session);
    if (!session) return;
    session.timer?.cancel();
    session.timer = undefined;
    if (session.up) return;
    session.up = true;
    this.listener.onUp(peer);
  }

  onCut(peer: PeerState, reason: string): void {
    const session = this.#sessions.get(peer.identity.session);
    if (!session?.up || this.#closing) return;
    session.timer?.cancel();
    const graceMs = this.options.reconnectGraceMs ?? RECONNECT_GRACE_MS;
    session.timer = this.options.clock.setTimer(graceMs * 1000, () => this.#down(session, reason));
    this.#problem(`connection to ${name(peer.identity)} cut: ${reason}`);
  }

  onBye(peer: PeerState): void {
    const session = this.#sessions.get(peer.identity.session);
    if (session) this.#end(session, 'it has left');
  }

  onMessage(peer: PeerState, kind: number, body: Buffer): void {
    this.listener.onMessage(peer, kind, body);
  }

  #accept(socket: Socket): void {
    if (this.#closing || this.#strangers.size >= STRANGERS_MAX) {
      socket.on('error', () => undefined).destroy();
      return;
    }
    const { clock, protocol, secret, self } = this.options;
    const handshake = new Handshake({ side: 'listener', protocol, secret, self: { ...self, session: this.#session } });
    const from = `${socket.remoteAddress}:${socket.remotePort}`;
    const stranger: ConnectionListener = {
      onOpen: (identity) => {
        this.#strangers.delete(connection);
        this.#join(identity, connection);
      },
      onClose: (reason) => {
        this.#strangers.delete(connection);
        if (!this.#closing) this.#problem(`connection from ${from} refused: ${reason}`);
      },
      onDrain: () => undefined,
      onFrame: (type) => {
        throw new FrameError(`a frame of type ${type} before the handshake`);
      },
      onChunk: () => undefined,
    };
    const connection = new Connection(socket, handshake, clock, stranger);
    this.#strangers.add(connection);
  }

  #join(identity: LinkIdentity, connection: Connection): void {
    if (this.#closing) throw new HandshakeError('this process is closing');
    let session = this.#sessions.get(identity.session);
    if (session && (session.peer.identity.id !== identity.id || session.peer.identity.role !== identity.role)) {
      throw new HandshakeError('the session belongs to another process');
    }
    if (!session) {
      const { clock, budget, outboxLimitBytes } = this.options;
      this.#replaceOthers(identity);
      session = { peer: new PeerState(identity, clock, budget, outboxLimitBytes ?? OUTBOX_LIMIT_BYTES, this), up: false, timer: undefined };
      this.#sessions.set(identity.session, session);
      this.#prune();
    }
    session.peer.attach(connection);
  }

  /** The same process under a new session keeps nothing of the one before. */
  #replaceOthers({ role, id }: LinkIdentity): void {
    for (const session of this.#sessions.values()) {
      if (session.peer.identity.role !== role || session.peer.identity.id !== id) continue;
      this.#end(session, 'replaced by a new session');
      session.peer.detach('replaced by a new session');
    }
  }

  #down(session: Session, reason: string): void {
    session.timer?.cancel();
    session.timer = this.options.clock.setTimer(KEEP_MS * 1000, () => session.peer.forget());
    if (!session.up) return;
    session.up = false;
    this.listener.onDown(session.peer, reason);
  }

  /** It will not come back. */
  #end(session: Session, reason: string): void {
    this.#down(session, reason);
    session.timer?.cancel();
    session.peer.forget();
    this.#sessions.delete(session.peer.identity.session);
  }

  #prune(): void {
    if (this.#sessions.size <= REMEMBERED_MAX) return;
    for (const session of this.#sessions.values()) {
      if (session.up || session.peer.attached) continue;
      this.#end(session, 'forgotten');
      if (this.#sessions.size <= REMEMBERED_MAX) return;
    }
  }

  #problem(text: string): void {
    this.options.onProblem?.(text);
  }
}

function name({ role, id }: LinkIdentity): string {
  return `${role} ${id}`;
}
