/**
 * One TCP or TLS connection of a link: handshake first, then frames, until it is cut, for whatever reason, once. It knows
 * nothing of sessions and deliveries. It sends a ping each second and counts as dead after three seconds without a byte
 * from the other side, which a half-open connection never sends.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '@paceline/clock';
import { FRAME_MAX_BYTES, FrameReader, FrameType, type FrameHandler } from './frames.js';
import { FrameWriter } from './frame-writer.js';
import { HANDSHAKE_MESSAGE_MAX_BYTES, HandshakeError, refusal, type Handshake, type LinkIdentity } from './handshake.js';

export const HANDSHAKE_LIMIT_MS = 5000;
export const PING_MS = 1000;
export const SILENCE_LIMIT_MS = 3000;
/** A timer that is this late says that this process stood still: the other side's silence is then no proof. */
const STANDSTILL_MS = 500;
/** More than this is not given to the socket before it has taken some: what waits here can still be overtaken. */
const SOCKET_BACKLOG_BYTES = 256 * 1024;
const END_LIMIT_MS = 1000;

export interface ConnectionListener extends FrameHandler {
  /** @throws HandshakeError when it is somebody else than expected */
  onOpen(peer: LinkIdentity): void;
  /** The socket takes more. */
  onDrain(): void;
  onClose(reason: string): void;
}

export class Connection implements FrameHandler {
  readonly writer = new FrameWriter();
  readonly #reader = new FrameReader(this, HANDSHAKE_MESSAGE_MAX_BYTES);
  #listener: ConnectionListener;
  #timer: Timer;
  #open = false;
  #closed = false;
  #heardUs: number;
  #bytesUnheard = false;

  constructor(
    private readonly socket: Socket,
    private readonly handshake: Handshake,
    private readonly clock: Clock,
    listener: ConnectionListener,
  ) {
    this.#listener = listener;
    this.#heardUs = clock.nowUs();
    this.#timer = clock.setTimer(HANDSHAKE_LIMIT_MS * 1000, () => this.cut(`no handshake within ${HANDSHAKE_LIMIT_MS} ms`));
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('drain', () => this.#listener.onDrain());
    socket.on('error', (error) => this.cut(error.message));
    socket.on('close', () => this.cut('closed by the other side'));
  }

  /** Whoever takes over what arrives from now on. */
  set listener(listener: ConnectionListener) {
    this.#listener = listener;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get writable(): boolean {
    return !this.#closed && this.socket.writableLength + this.writer.bytes < SOCKET_BACKLOG_BYTES;
  }

  /** The dialer's first message. */
  start(): void {
    const message = this.handshake.start();
    if (message) this.#say(message);
  }

  flush(): void {
    if (!this.#closed) this.writer.flush(this.socket);
  }

  /** Ends it at once; what was not sent is lost. */
  cut(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.stop();
    this.#timer.cancel();
    this.socket.destroy();
    this.#listener.onClose(reason);
  }

  /** Sends what was gathered and a farewell, then ends it. */
  leave(): void {
    if (this.#closed) return;
    this.writer.frame(FrameType.BYE, [], 0);
    this.flush();
    this.#closed = true;
    this.#reader.stop();
    this.#timer.cancel();
    this.socket.destroySoon();
    const limit = this.clock.setTimer(END_LIMIT_MS * 1000, () => this.socket.destroy());
    this.socket.once('close', () => limit.cancel());
    this.#listener.onClose('closed here');
  }

  onFrame(type: number, body: Buffer): void {
    if (this.#open) {
      if (type !== FrameType.PING) this.#listener.onFrame(type, body);
      return;
    }
    if (type !== FrameType.HANDSHAKE) throw new HandshakeError(`expected a handshake, found a frame of type ${type}`);
    const answer = this.handshake.receive(body);
    if (answer) this.#say(answer);
    if (this.handshake.peer) this.#opened(this.handshake.peer);
  }

  onChunk(transfer: number, piece: Buffer): void {
    if (!this.#open) throw new HandshakeError('expected a handshake, found a transfer');
    this.#listener.onChunk(transfer, piece);
  }

  #opened(peer: LinkIdentity): void {
    this.#open = true;
    this.#reader.maxBytes = FRAME_MAX_BYTES;
    this.#timer.cancel();
    this.#arm();
    this.#listener.onOpen(peer);
  }

  #say(message: Uint8Array): void {
    this.writer.frame(FrameType.HANDSHAKE, [message], message.byteLength);
    this.flush();
  }

  #read(chunk: Buffer): void {
    this.#bytesUnheard = true;
    try {
      this.#reader.push(chunk);
    } catch (error) {
      // Whatever it was, a broken frame or one that its receiver could not read: this connection ends, nothing else.
      if (error instanceof HandshakeError && !this.#closed) this.#say(refusal(error));
      this.cut(error instanceof Error ? error.message : String(error));
    }
  }

  #arm(): void {
    const dueUs = this.clock.nowUs() + PING_MS * 1000;
    this.#timer = this.clock.setTimer(PING_MS * 1000, () => this.#beat(dueUs));
  }

  #beat(dueUs: number): void {
    const nowUs = this.clock.nowUs();
    if (this.#bytesUnheard || nowUs - dueUs > STANDSTILL_MS * 1000) this.#heardUs = nowUs;
    this.#bytesUnheard = false;
    if (nowUs - this.#heardUs >= SILENCE_LIMIT_MS * 1000) {
      this.cut(`silent for ${SILENCE_LIMIT_MS} ms`);
      return;
    }
    // A socket that takes nothing needs no ping: what it holds already says the same.
    if (this.writable) {
      this.writer.frame(FrameType.PING, [], 0);
      this.flush();
    }
    this.#arm();
  }
}
