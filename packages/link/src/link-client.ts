/**
 * The dialling end: one per process that is dialled, from the moment membership names it until it is closed. It keeps one
 * connection, dials again with growing pauses when that is cut, and keeps what was sent until it has arrived, however long
 * that takes, within the bound of its buffer. When another session answers, what was meant for the one before is dropped.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Timer } from '@paceline/clock';
import { parseAddress, requireSecret } from './address.js';
import { Connection, type ConnectionListener } from './connection.js';
import { FrameError } from './frames.js';
import { Handshake, randomId, type LinkIdentity } from './handshake.js';
import { PeerState, type LinkPeer, type PeerListener, type SendOptions } from './link-peer.js';
import { OUTBOX_LIMIT_BYTES, RECONNECT_GRACE_MS, type LinkListener, type LinkOptions } from './options.js';

const FIRST_PAUSE_MS = 25;
const MAX_PAUSE_MS = 1000;
/** Somebody else answers: the process that was dialled has ended, and another has its port. */
const TAKEN_PAUSE_MS = 10_000;
/** A connection that is neither accepted nor refused, e.g. by a firewall. */
const CONNECT_LIMIT_MS = 3000;

export interface LinkClientOptions extends LinkOptions {
  /** `host:port` */
  readonly address: string;
  /** Who has to answer there. */
  readonly expected: Pick<LinkIdentity, 'role' | 'id'>;
}

export class LinkClient implements PeerListener {
  readonly #session = randomId();
  /** Before the first answer the session of the other side is not known: ''. */
  #peer: PeerState;
  #connection: Connection | undefined;
  #dialling: Socket | undefined;
  #timer: Timer | undefined;
  #grace: Timer | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #up = false;
  #closed = false;
  #lastProblem = '';
  /** It said goodbye: that it does not answer any more is no problem. */
  #left = false;

  /** Dials at once. @throws ServingError for a malformed address, or without a secret beyond loopback */
  constructor(
    private readonly options: LinkClientOptions,
    private readonly listener: LinkListener,
  ) {
    requireSecret(options.secret, parseAddress(options.address).host);
    this.#peer = this.#newPeer({ ...options.expected, session: '' });
    this.#dial();
  }

  /** The other end; replaced when another session answers. Sending works before the first connection. */
  get peer(): LinkPeer {
    return this.#peer;
  }

  /** Connected, or cut so recently that it may come back unnoticed. */
  get up(): boolean {
    return this.#up;
  }

  /** See {@link LinkPeer.send}. */
  send(kind: number, parts: readonly Uint8Array[], bytes: number, options?: SendOptions): boolean {
    return this.#peer.send(kind, parts, bytes, options);
  }

  /** Says goodbye; nothing is reported any more. */
  close(): void {
    this.#closed = true;
    this.#up = false;
    this.#timer?.cancel();
    this.#grace?.cancel();
    this.#dialling?.destroy();
    this.#connection?.cut('closed here');
    this.#peer.leave();
  }

  onReady(peer: PeerState): void {
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#lastProblem = '';
    this.#left = false;
    this.#grace?.cancel();
    this.#grace = undefined;
    if (this.#up) return;
    this.#up = true;
    this.listener.onUp(peer);
  }

  onCut(peer: PeerState, reason: string): void {
    if (this.#closed || peer !== this.#peer) return;
    if (this.#up && !this.#grace) {
      const graceMs = this.options.reconnectGraceMs ?? RECONNECT_GRACE_MS;
      this.#grace = this.options.clock.setTimer(graceMs * 1000, () => this.#down(reason));
    }
    this.#again(reason);
  }

  onBye(): void {
    this.#left = true;
    this.#down('it has left');
  }

  onMessage(peer: PeerState, kind: number, body: Buffer): void {
    this.listener.onMessage(peer, kind, body);
  }

  #dial(): void {
    const { address, tls, clock } = this.options;
    const { host, port } = parseAddress(address);
    const socket = tls
      ? connectTls({ host, port, ca: tls.ca, cert: tls.certificate, key: tls.key, rejectUnauthorized: true })
      : connect({ host, port });
    this.#dialling = socket;
    this.#timer = clock.setTimer(CONNECT_LIMIT_MS * 1000, () => failed(new Error(`no connection within ${CONNECT_LIMIT_MS} ms`)));
    const failed = (error: Error): void => {
      socket.removeAllListeners().on('error', () => undefined);
      socket.destroy();
      this.#again(error.message);
    };
    socket.once('error', failed);
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      socket.removeListener('error', failed);
      this.#timer?.cancel();
      this.#dialling = undefined;
      this.#greet(socket);
    });
  }

  #greet(socket: Socket): void {
    const { clock, protocol, secret, self, address } = this.options;
    const expected = { ...this.options.expected, address };
    const handshake = new Handshake({ side: 'dialer', protocol, secret, self: { ...self, session: this.#session }, expected });
    const greeting: ConnectionListener = {
      onOpen: (identity) => this.#join(identity, connection),
      onClose: (reason) => {
        this.#connection = undefined;
        if (handshake.somebodyElse) this.#pauseMs = TAKEN_PAUSE_MS;
        this.#again(reason);
      },
      onDrain: () => undefined,
      onFrame: (type) => {
        throw new FrameError(`a frame of type ${type} before the handshake`);
      },
      onChunk: () => undefined,
    };
    const connection = new Connection(socket, handshake, clock, greeting);
    this.#connection = connection;
    connection.start();
  }

  #join(identity: LinkIdentity, connection: Connection): void {
    const known = this.#peer.identity.session;
    if (known === '') {
      this.#peer.named(identity);
    } else if (known !== identity.session) {
      const before = this.#peer;
      this.#down('replaced by a new session');
      this.#peer = this.#newPeer(identity);
      before.forget();
    }
    this.#connection = undefined;
    this.#peer.attach(connection);
  }

  #newPeer(identity: LinkIdentity): PeerState {
    const { clock, budget, outboxLimitBytes } = this.options;
    return new PeerState(identity, clock, budget, outboxLimitBytes ?? OUTBOX_LIMIT_BYTES, this);
  }

  #again(reason: string): void {
    if (this.#closed) return;
    this.#dialling = undefined;
    this.#timer?.cancel();
    const problem = `link to ${this.options.expected.role} ${this.options.expected.id} at ${this.options.address}: ${reason}`;
    if (problem !== this.#lastProblem && !this.#left) this.options.onProblem?.(problem);
    this.#lastProblem = problem;
    this.#timer = this.options.clock.setTimer(this.#pauseMs * 1000, () => this.#dial());
    this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
  }

  #down(reason: string): void {
    this.#grace?.cancel();
    this.#grace = undefined;
    if (!this.#up) return;
    this.#up = false;
    this.listener.onDown(this.#peer, reason);
  }
}
