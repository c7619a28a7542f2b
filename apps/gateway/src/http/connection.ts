/**
 * One client connection of the data plane: reads inference requests, runs them, and writes the replies in the order of the
 * requests. The first request that is not plainly an inference request takes the socket, with its bytes, to node:http for
 * good. Invariant: bytes are consumed by exactly one of the two parsers, and only when all earlier replies are out.
 */
import type { Socket } from 'node:net';
import { ServingError } from '@paceline/protocol';
import type { Grant } from '../access/grant.js';
import { BUDGET_ABOVE_BYTES } from '../infer/byte-budget.js';
import type { ConnectionHost } from './connection-host.js';
import { judgeTimeout } from './connection-timeouts.js';
import { bodyTooLargeText, tooManyHeadersText } from './data-plane-limits.js';
import { IncomingBody } from './incoming-body.js';
import { errorReply, type HttpReply } from './infer-reply.js';
import { peerOf } from './peer.js';
import { ReplyQueue } from './reply-queue.js';
import { writeReply } from './reply-writer.js';
import { headerCount, mayBecomeInfer, parseInferHead, type InferHead } from './request-head.js';

const HEAD_END = Buffer.from('\r\n\r\n', 'latin1');
const EMPTY = Buffer.alloc(0);

export class Connection {
  readonly #replies = new ReplyQueue();
  /** Bytes read and not yet parsed: part of a head, or what waits for room. */
  #rest: Buffer = EMPTY;
  #body: IncomingBody | undefined;
  /** The last head of this connection: clients repeat themselves. */
  #headText = '';
  #head: InferHead | undefined;
  /** Of the request whose body is being read. */
  #grant: Grant | undefined;
  #state: 'open' | 'handing-over' | 'ending' | 'gone' = 'open';
  #paused = false;
  #parsing = false;
  /** Before the connection ends with a reply: waiting for what may still lie in the socket, and done so. */
  #look: 'none' | 'looking' | 'looked' = 'none';
  /** Tick of the last byte read or written, and of the first byte of the request being read. */
  #activeTick: number;
  #requestTick: number;
  /** Known where requests are logged. */
  readonly #peer: string | undefined;
  /** Whether the socket times an unsent reply. */
  #watching = false;

  constructor(
    private readonly socket: Socket,
    private readonly host: ConnectionHost,
    private readonly onGone: (connection: Connection) => void,
  ) {
    this.#activeTick = this.#requestTick = host.tick;
    this.#peer = host.route.logsAccess ? peerOf(socket) : undefined;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('drain', this.#onDrain);
    socket.on('error', ignore);
    socket.on('close', this.#onClose);
  }

  /** Once a second: ends what stalls. */
  checkTimeouts(): void {
    const { limits, tick } = this.host;
    if (this.#state === 'gone' || this.#watchUnsent()) return;
    const body = this.#body;
    const verdict = judgeTimeout(
      {
        quietS: tick - this.#activeTick,
        requestS: tick - this.#requestTick,
        running: this.#replies.size > 0,
        ending: this.#state === 'ending',
        body,
        partialHead: this.#rest.length > 0,
      },
      limits,
    );
    if (verdict.kind === 'cut') this.socket.destroy();
    else if (verdict.kind === 'refuse') this.#refuse(408, verdict.reason, verdict.text, body?.head);
  }

  /** Replies that the client does not take are timed by the socket itself, which sees progress inside one write. */
  #watchUnsent(): boolean {
    const unsent = this.socket.writableLength > 0;
    if (unsent !== this.#watching) {
      this.#watching = unsent;
      this.socket.setTimeout(unsent ? this.host.limits.stallTimeoutS * 1000 : 0, this.#onStalled);
      this.#activeTick = this.host.tick;
    }
    return unsent;
  }

  /** A request is under way, or its reply. */
  get busy(): boolean {
    return this.#replies.size > 0 || this.socket.writableLength > 0;
  }

  /** The data plane closes: ends now if nothing is under way, else with the last reply. */
  shutDown(): void {
    if (this.#isIdle()) {
      afterReading(() => {
        if (this.#isIdle()) this.#end();
      });
    }
  }

  #isIdle(): boolean {
    return this.#state === 'open' && this.#replies.size === 0 && this.#body === undefined && this.#rest.length === 0;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#activeTick = this.host.tick;
    if (this.#state === 'handing-over') {
      this.#rest = Buffer.concat([this.#rest, chunk]);
      return;
    }
    if (this.#state !== 'open') return;
    let bytes = chunk;
    if (this.#body !== undefined) bytes = this.#fillBody(chunk);
    else if (this.#rest.length > 0) bytes = Buffer.concat([this.#rest, chunk]);
    else this.#requestTick = this.#activeTick;
    this.#rest = bytes;
    this.#parse();
  };

  // A client that closes its half is taken to have left: its requests are cancelled when the socket closes.
  readonly #onEnd = (): void => {
    this.socket.destroy();
  };

  readonly #onStalled = (): void => {
    this.socket.destroy();
  };

  readonly #onDrain = (): void => {
    this.#activeTick = this.host.tick;
    this.#continue();
  };

  readonly #onClose = (): void => {
    this.#state = 'gone';
    if (this.#body !== undefined) this.host.budget.release(this.#body.reservedBytes);
    this.#body = undefined;
    this.#replies.abandon((bytes) => this.host.budget.release(bytes));
    this.onGone(this);
  };

  /** Reads on after room was made. */
  #continue(): void {
    if (this.#parsing) return;
    if (this.#state === 'handing-over') {
      if (this.#replies.size === 0) this.#handOver();
      return;
    }
    if (!this.#paused || this.#isFull()) return;
    this.#paused = false;
    this.#parse();
    if (!this.#paused) this.socket.resume();
  }

  #isFull(): boolean {
    return this.#replies.size >= this.host.limits.maxPipelined || this.socket.writableNeedDrain;
  }

  /** Takes whole requests off `#rest` until it is used up, incomplete, or there is no room for more. */
  #parse(): void {
    this.#parsing = true;
    while (this.#state === 'open' && this.#body === undefined && this.#rest.length > 0) {
      if (this.#isFull()) {
        this.#paused = true;
        this.socket.pause();
        break;
      }
      if (!this.#parseOne()) break;
    }
    this.#parsing = false;
    if (this.#state !== 'handing-over') return;
    if (this.#replies.size === 0) this.#handOver();
    else this.socket.pause();
  }

  /** @returns whether another request may follow */
  #parseOne(): boolean {
    const bytes = this.#rest;
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) {
      if (!mayBecomeInfer(bytes)) this.#state = 'handing-over';
      else if (bytes.length > this.host.limits.maxHeaderBytes) this.#headTooLarge();
      return false;
    }
    if (end > this.host.limits.maxHeaderBytes && mayBecomeInfer(bytes)) {
      this.#headTooLarge();
      return false;
    }
    const text = bytes.toString('latin1', 0, end);
    if (text !== this.#headText) {
      const { maxHeaderCount } = this.host.limits;
      const count = headerCount(text);
      if (count > maxHeaderCount && mayBecomeInfer(bytes)) {
        this.#refuse(431, 'too_many_headers', tooManyHeadersText(count, maxHeaderCount));
        return false;
      }
      this.#head = parseInferHead(text, this.host.credentialNames);
      this.#headText = text;
    }
    const head = this.#head;
    if (head === undefined) {
      this.#state = 'handing-over';
      return false;
    }
    return this.#takeBody(head, bytes, end + HEAD_END.length);
  }

  #takeBody(head: InferHead, bytes: Buffer, start: number): boolean {
    const { limits, budget } = this.host;
    const length = head.contentLength;
    const grant = this.host.admit(head);
    if (grant instanceof ServingError) return this.#refuseAccess(grant, head, bytes, start + length);
    this.#grant = grant;
    if (length > limits.maxInputBytes) {
      this.#refuse(413, 'body_too_large', bodyTooLargeText(length, limits.maxInputBytes), head);
      return false;
    }
    const reservedBytes = length > BUDGET_ABOVE_BYTES ? length : 0;
    if (reservedBytes > 0 && !budget.reserve(reservedBytes)) {
      this.#refuseWith(budget.refusal(length), head);
      return false;
    }
    const end = start + length;
    if (end <= bytes.length) {
      this.#rest = end === bytes.length ? EMPTY : bytes.subarray(end);
      this.#requestTick = this.host.tick;
      this.#start(head, bytes.subarray(start, end), reservedBytes);
      return true;
    }
    this.#body = new IncomingBody(head, reservedBytes);
    this.#body.take(bytes.subarray(start));
    this.#rest = EMPTY;
    return false;
  }

  /** @returns the bytes behind the body, or none while it is incomplete */
  #fillBody(chunk: Buffer): Buffer {
    const body = this.#body as IncomingBody;
    const used = body.take(chunk);
    if (!body.complete) return EMPTY;
    this.#body = undefined;
    this.#requestTick = this.#activeTick;
    this.#start(body.head, body.buffer, body.reservedBytes);
    return used === chunk.length ? EMPTY : chunk.subarray(used);
  }

  #start(head: InferHead, body: Buffer, reservedBytes: number): void {
    const slot = this.#replies.open(head.close, reservedBytes);
    if (head.close) this.#state = 'ending';
    slot.cancel = this.host.route.handle(
      {
        model: head.model,
        version: head.version,
        inferenceHeaderLength: head.inferenceHeaderLength,
        contentEncoding: head.contentEncoding,
        acceptEncoding: head.acceptEncoding,
        requestTimeout: head.requestTimeout,
        body,
        grant: this.#grant,
        peer: this.#peer,
        traceparent: head.traceparent,
      },
      (reply) => {
        slot.reply = reply;
        if (this.#replies.isNext(slot)) this.#flush();
      },
    );
  }

  /** Writes the replies that are due. */
  #flush(): void {
    for (let slot = this.#replies.due(); slot !== undefined; slot = this.#replies.due()) {
      const alone = this.#replies.size === 1 && this.#rest.length === 0 && this.#body === undefined;
      const last = slot.close || (this.host.closing && alone);
      if (last && !slot.close && this.#look !== 'looked') {
        this.#lookFirst();
        return;
      }
      this.#look = 'none';
      this.#replies.shift();
      writeReply(this.socket, slot.reply, this.host.dateLine, last);
      this.host.budget.release(slot.reservedBytes);
      if (last) {
        this.#end();
        return;
      }
    }
    this.#activeTick = this.host.tick;
    this.#continue();
  }

  /** A request that has reached this machine is answered, though the connection is about to end. */
  #lookFirst(): void {
    if (this.#look === 'looking') return;
    this.#look = 'looking';
    afterReading(() => {
      if (this.#state === 'gone') return;
      this.#look = 'looked';
      this.#flush();
    });
  }

  #headTooLarge(): void {
    this.#refuse(
      431,
      'headers_too_large',
      `request headers exceed the limit of ${this.host.limits.maxHeaderBytes} bytes. Use --http-max-header-size to increase the limit.`,
    );
  }

  /** Where the body came with the head it is skipped and the connection goes on; else nothing is read for such a caller. */
  #refuseAccess(error: ServingError, head: InferHead, bytes: Buffer, end: number): boolean {
    if (end > bytes.length) {
      this.#refuseWith(error, head);
      return false;
    }
    this.#rest = end === bytes.length ? EMPTY : bytes.subarray(end);
    const slot = this.#replies.open(head.close, 0);
    if (head.close) this.#state = 'ending';
    const reply = errorReply(error);
    slot.reply = reply;
    this.#noteRefusal(error, reply, head);
    if (this.#replies.isNext(slot)) this.#flush();
    return true;
  }

  #noteRefusal(error: ServingError, reply: HttpReply, head: InferHead | undefined): void {
    const { model = '', version = '', traceparent } = head ?? {};
    this.host.route.noteRefusal(error, reply, { model, version, peer: this.#peer, traceparent }, this.#body?.filledBytes ?? 0);
  }

  /** @param head undefined where it was not read */
  #refuse(httpStatus: number, reason: string, message: string, head?: InferHead): void {
    this.#refuseWith(new ServingError('INVALID_ARGUMENT', message, { reason, httpStatus }), head);
  }

  /** Answers after the replies before it, then ends the connection: what follows cannot be told apart any more. */
  #refuseWith(error: ServingError, head: InferHead | undefined): void {
    const reply = errorReply(error);
    this.#noteRefusal(error, reply, head);
    if (this.#body !== undefined) this.host.budget.release(this.#body.reservedBytes);
    this.#body = undefined;
    this.#rest = EMPTY;
    this.#state = 'ending';
    this.#replies.open(true, 0).reply = reply;
    this.#flush();
  }

  /** Sends the rest, then waits a little for the client to close, reading what it still sends. */
  #end(): void {
    this.#state = 'ending';
    this.#rest = EMPTY;
    this.#activeTick = this.host.tick;
    this.socket.end();
    this.socket.resume();
  }

  #handOver(): void {
    const { socket } = this;
    this.#state = 'gone';
    socket.setTimeout(0, this.#onStalled);
    socket.off('data', this.#onData);
    socket.off('end', this.#onEnd);
    socket.off('drain', this.#onDrain);
    socket.off('error', ignore);
    socket.off('close', this.#onClose);
    this.onGone(this);
    this.host.handOver(socket, this.#rest);
  }
}

/** Calls `then` after a turn of the event loop, which reads what lies in the sockets. */
function afterReading(then: () => void): void {
  setImmediate(() => setImmediate(then));
}

function ignore(): void {
  // 'close' follows every 'error' and does what is to be done.
}
