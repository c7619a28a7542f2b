/**
 * What this process shares with one session of another, over as many connections as it takes: messages in order, reliable
 * ones exactly once as long as both sessions live. A connection that is attached replaces the one before; its first word
 * is how much has arrived here, from which the other side goes on. Nothing is delivered before that word has come.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Connection, ConnectionListener } from './connection.js';
import { FrameError, FrameType, KIND_MASK, MESSAGE, RELIABLE } from './frames.js';
import type { LinkIdentity } from './handshake.js';
import { Outbox } from './outbox.js';
import type { ReceiveBudget } from './receive-budget.js';
import { TransfersIn, type TransferSink } from './transfers-in.js';

/** An acknowledgement is sent after so many messages or bytes, with whatever else is sent, and after this time. */
const ACK_MESSAGES = 64;
const ACK_BYTES = 256 * 1024;
const ACK_DELAY_US = 20_000;

export interface SendOptions {
  /** false: lost with the connection, and at once where there is none. Default true. */
  readonly reliable?: boolean;
  /** Messages with the same positive number never overtake each other, however large they are. Default: any small message may overtake a large one. */
  readonly lane?: number;
  /** The other side can never take a message of this size; it has been dropped. */
  readonly onRefused?: () => void;
}

/** The other end, as the owner of a link sees it. */
export interface LinkPeer {
  readonly identity: LinkIdentity;
  /** A connection exists and both sides know what the other has. */
  readonly connected: boolean;
  /** Bytes of messages that were sent and have not arrived. */
  readonly owedBytes: number;
  /**
   * @param kind 0..63, the meaning is the application's
   * @param parts the body in pieces, unchanged until it has arrived
   * @returns false when the buffer is full: nothing has been sent
   */
  send(kind: number, parts: readonly Uint8Array[], bytes: number, options?: SendOptions): boolean;
  /** Resolves when every reliable message sent so far has arrived, true, or the limit is over, false. */
  flush(limitMs: number): Promise<boolean>;
  /** Gives up whatever was to be sent and has not arrived; what has arrived here stays known. */
  forget(): void;
}

export interface PeerListener {
  /** Connected for the first time, or again. */
  onReady(peer: PeerState): void;
  onCut(peer: PeerState, reason: string): void;
  /** It said that it leaves. */
  onBye(peer: PeerState): void;
  /** @param body the receiver's to keep; throwing cuts the connection */
  onMessage(peer: PeerState, kind: number, body: Buffer): void;
}

export class PeerState implements LinkPeer, ConnectionListener, TransferSink {
  readonly #outbox: Outbox;
  readonly #transfers: TransfersIn;
  #connection: Connection | undefined;
  #ready = false;
  #received = 0;
  #owedMessages = 0;
  #owedBytes = 0;
  #ackNow = false;
  #ackTimer: Timer | undefined;
  #scheduled = false;

  constructor(
    private known: LinkIdentity,
    private readonly clock: Clock,
    budget: ReceiveBudget,
    outboxLimitBytes: number,
    private readonly listener: PeerListener,
  ) {
    this.#outbox = new Outbox(outboxLimitBytes);
    this.#transfers = new TransfersIn(this, budget);
  }

  get identity(): LinkIdentity {
    return this.known;
  }

  get connected(): boolean {
    return this.#ready;
  }

  get owedBytes(): number {
    return this.#outbox.bytes;
  }

  /** A connection exists, ready or not. */
  get attached(): boolean {
    return this.#connection !== undefined;
  }

  send(kind: number, parts: readonly Uint8Array[], bytes: number, options?: SendOptions): boolean {
    const reliable = options?.reliable ?? true;
    if (!reliable && !this.#ready) return true;
    const type = (reliable ? RELIABLE : MESSAGE) | kind;
    if (!this.#outbox.add({ type, parts, bytes, reliable, lane: options?.lane ?? 0, onRefused: options?.onRefused })) return false;
    this.#schedule();
    return true;
  }

  flush(limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const limit = this.clock.setTimer(limitMs * 1000, () => resolve(false));
      this.#outbox.onFlushed(() => {
        limit.cancel();
        resolve(true);
      });
      if (!this.#ready) return;
      this.#write();
      this.#connection?.writer.frame(FrameType.SYNC, [], 0);
      this.#connection?.flush();
    });
  }

  /** The session that was not known before the first connection. */
  named(identity: LinkIdentity): void {
    this.known = identity;
  }

  /** The connection is open; it takes the place of any before. */
  attach(connection: Connection): void {
    this.detach('replaced by a new connection');
    this.#connection = connection;
    connection.listener = this;
    connection.writer.header(FrameType.RESUME, 8);
    connection.writer.f64(this.#received);
    connection.flush();
  }

  detach(reason: string): void {
    this.#connection?.cut(reason);
  }

  /** Says goodbye and keeps nothing. */
  leave(): void {
    this.#connection?.leave();
    this.forget();
  }

  forget(): void {
    this.#outbox.clear();
  }

  onOpen(): void {
    // It was opened before it was attached.
  }

  onDrain(): void {
    this.#write();
  }

  onClose(reason: string): void {
    this.#connection = undefined;
    this.#ackTimer?.cancel();
    this.#ackTimer = undefined;
    this.#ackNow = false;
    this.#owedMessages = 0;
    this.#owedBytes = 0;
    this.#transfers.clear();
    this.#outbox.disconnected();
    this.#ready = false;
    this.listener.onCut(this, reason);
  }

  onChunk(transfer: number, piece: Buffer): void {
    this.#transfers.chunk(transfer, piece);
  }

  onFrame(type: number, body: Buffer): void {
    if (type >= MESSAGE) this.onMessage(type, body);
    else this.#onControl(type, body);
  }

  onMessage(type: number, body: Buffer): void {
    if (!this.#ready) throw new FrameError('expected how far the other side is, found a message');
    if (type >= RELIABLE) {
      this.#received++;
      this.#oweAck(body.byteLength);
    }
    this.listener.onMessage(this, type & KIND_MASK, body);
  }

  grant(transfer: number, bytes: number): void {
    this.#connection?.writer.header(FrameType.GRANT, 8);
    this.#connection?.writer.u32(transfer);
    this.#connection?.writer.u32(bytes);
    this.#schedule();
  }

  refuse(transfer: number): void {
    this.#connection?.writer.header(FrameType.REFUSE, 4);
    this.#connection?.writer.u32(transfer);
    this.#schedule();
  }

  #onControl(type: number, body: Buffer): void {
    switch (type) {
      case FrameType.RESUME:
        if (this.#ready) throw new FrameError('a second resumption');
        this.#outbox.resume(sized(body, 8).readDoubleLE(0));
        this.#ready = true;
        this.listener.onReady(this);
        this.#schedule();
        return;
      case FrameType.ACK:
        this.#outbox.acknowledge(sized(body, 8).readDoubleLE(0));
        return;
      case FrameType.SYNC:
        this.#ackNow = true;
        this.#schedule();
        return;
      case FrameType.BEGIN:
        sized(body, 13);
        this.#transfers.begin(body.readUInt32LE(0), body[4] ?? 0, body.readDoubleLE(5));
        return;
      case FrameType.GRANT:
        sized(body, 8);
        this.#outbox.grant(body.readUInt32LE(0), body.readUInt32LE(4));
        this.#schedule();
        return;
      case FrameType.REFUSE:
        this.#outbox.refuse(sized(body, 4).readUInt32LE(0));
        this.#schedule();
        return;
      case FrameType.BYE:
        this.listener.onBye(this);
        this.detach('the other side has left');
        return;
      default:
        throw new FrameError(`a frame of the unknown type ${type}`);
    }
  }

  #oweAck(bytes: number): void {
    this.#owedMessages++;
    this.#owedBytes += bytes;
    if (this.#owedMessages >= ACK_MESSAGES || this.#owedBytes >= ACK_BYTES) {
      this.#ackNow = true;
      this.#schedule();
    } else {
      this.#ackTimer ??= this.clock.setTimer(ACK_DELAY_US, () => {
        this.#ackTimer = undefined;
        if (this.#owedMessages === 0) return;
        this.#ackNow = true;
        this.#write();
      });
    }
  }

  /** Once in a turn of the event loop, after all that is ready in it. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#write();
    });
  }

  #write(): void {
    const connection = this.#connection;
    if (!connection) return;
    if (this.#ready) this.#outbox.write(connection.writer, () => connection.writable);
    if (this.#ackNow || (this.#owedMessages > 0 && connection.writer.bytes > 0)) {
      connection.writer.header(FrameType.ACK, 8);
      connection.writer.f64(this.#received);
      this.#owedMessages = 0;
      this.#owedBytes = 0;
      this.#ackNow = false;
    }
    connection.flush();
  }
}

function sized(body: Buffer, bytes: number): Buffer {
  if (body.byteLength !== bytes) throw new FrameError(`expected a frame of ${bytes} bytes, found ${body.byteLength}`);
  return body;
}
