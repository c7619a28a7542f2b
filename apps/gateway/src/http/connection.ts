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
import { ConnectionTimes } from './connection-times.js';
import { bodyTooLargeText } from './data-plane-limits.js';
import { HeadReader } from './head-reader.js';
import { IncomingBody, RefusedBody } from './incoming-body.js';
import { errorReply, type HttpReply } from './infer-reply.js';
import type { InferOrigin } from './infer-route.js';
import { peerOf } from './peer.js';
import { afterReading, ReplyStream } from './reply-stream.js';
import type { InferHead } from './request-head.js';

const EMPTY = Buffer.alloc(0);

export class Connection {
  readonly #replies: ReplyStream;
  readonly #heads: HeadReader;
  readonly #times: ConnectionTimes;
  /** Bytes read and not yet parsed: part of a head, or what waits for room. */
  #rest: Buffer = EMPTY;
  #body: IncomingBody | RefusedBody | undefined;
  /** Of the request whose body is being read. */
  #grant: Grant | undefined;
  #state: 'open' | 'handing-over' | 'ending' | 'gone' = 'open';
  #paused = false;
  #parsing = false;
  #heard = false;
  /** Known where requests are logged. */
  readonly #peer: string | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly host: ConnectionHost,
    private readonly onGone: (connection: Connection) => void,
  ) {
    this.#times = new ConnectionTimes(socket, host);
    this.#replies = new ReplyStream(socket, host, {
      isAtRest: () => this.#rest.length === 0 && this.#body === undefined,
      onWritten: this.#onRoom,
      onLastWritten: () => this.#end(),
    });
    this.#heads = new HeadReader(host.limits, host.credentialNames);
    this.#peer = host.route.logsAccess ? peerOf(socket) : undefined;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('drain', this.#onRoom);
    socket.on('error', ignore);
    socket.on('close', this.#onClose);
  }

  /** Once a second: ends what stalls. */
  checkTimeouts(): void {
    if (this.#state === 'gone') return;
    const body = this.#body;
    const running = this.#replies.size > 0;
    const verdict = this.#times.judge({ running, ending: this.#state === 'ending', body, partialHead: this.#rest.length > 0 });
    if (verdict.kind === 'cut') this.socket.destroy();
    else if (verdict.kind === 'refuse') this.#refuse(408, verdict.reason, verdict.text, body?.head);
  }

  /** A request is under way, or its reply. */
  get busy(): boolean {
    return this.#replies.size > 0 || this.socket.writableLength > 0;
  }

  /** Nothing has come on it yet: the first request may be on its way. */
  get isNew(): boolean {
    return !this.#heard;
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
    this.#heard = true;
    this.#times.moved();
    if (this.#state === 'handing-over') {
      this.#rest = Buffer.concat([this.#rest, chunk]);
      return;
    }
    if (this.#state !== 'open') return;
    let bytes = chunk;
    if (this.#body !== undefined) bytes = this.#fillBody(chunk);
    else if (this.#rest.length > 0) bytes = Buffer.concat([this.#rest, chunk]);
    else this.#times.requestBegins();
    this.#rest = bytes;
    this.#parse();
  };

  // A client that closes its half is taken to have left: its requests are cancelled when the socket closes.
  readonly #onEnd = (): void => {
    this.socket.destroy();
  };

  readonly #onRoom = (): void => {
    this.#times.moved();
    this.#continue();
  };

  readonly #onClose = (): void => {
    this.#state = 'gone';
    if (this.#body !== undefined) this.host.budget.release(this.#body.reservedBytes);
    this.#body = undefined;
    this.#replies.abandon();
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
    const reading = this.#heads.read(this.#rest);
    switch (reading.kind) {
      case 'head':
        return this.#takeBody(reading.head, this.#rest, reading.length);
      case 'more':
        return false;
      case 'foreign':
        this.#state = 'handing-over';
        return false;
      case 'refuse':
        this.#refuse(431, reading.reason, reading.text);
        return false;
    }
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
    const end = start + length;
    const refusal = end > bytes.length ? this.host.route.refuseUnread(this.#originOf(head)) : undefined;
    const reservedBytes = refusal === undefined && length > BUDGET_ABOVE_BYTES ? length : 0;
    if (reservedBytes > 0 && !budget.reserve(reservedBytes)) {
      this.#refuseWith(budget.refusal(length), head);
      return false;
    }
    if (end <= bytes.length) {
      this.#rest = end === bytes.length ? EMPTY : bytes.subarray(end);
      this.#times.requestBegins();
      this.#start(head, bytes.subarray(start, end), reservedBytes);
      return true;
    }
    this.#body = refusal ? new RefusedBody(head, refusal) : new IncomingBody(head, reservedBytes, this.host.bodies);
    this.#body.take(bytes.subarray(start));
    this.#rest = EMPTY;
    return false;
  }

  /** @returns the bytes behind the body, or none while it is incomplete */
  #fillBody(chunk: Buffer): Buffer {
    const body = this.#body as IncomingBody | RefusedBody;
    const used = body.take(chunk);
    if (!body.complete) return EMPTY;
    this.#body = undefined;
    this.#times.requestBegins();
    if (body instanceof RefusedBody) this.#answer(body.head, body.reply);
    else this.#start(body.head, body.buffer, body.reservedBytes, body);
    return used === chunk.length ? EMPTY : chunk.subarray(used);
  }

  #start(head: InferHead, body: Buffer, reservedBytes: number, incoming?: IncomingBody): void {
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
        if (reply.status === 200) incoming?.done();
        this.#replies.answer(slot, reply);
      },
    );
  }

  /** Where the body came with the head it is skipped and the connection goes on; else nothing is read for such a caller. */
  #refuseAccess(error: ServingError, head: InferHead, bytes: Buffer, end: number): boolean {
    if (end > bytes.length) {
      this.#refuseWith(error, head);
      return false;
    }
    this.#rest = end === bytes.length ? EMPTY : bytes.subarray(end);
    const reply = errorReply(error);
    this.#noteRefusal(error, reply, head);
    this.#answer(head, reply);
    return true;
  }

  /** A request that ends with its head: its body has been passed over. */
  #answer(head: InferHead, reply: HttpReply): void {
    const slot = this.#replies.open(head.close, 0);
    if (head.close) this.#state = 'ending';
    this.#replies.answer(slot, reply);
  }

  #originOf({ model, version, traceparent }: InferHead): InferOrigin {
    return { model, version, peer: this.#peer, traceparent };
  }

  #noteRefusal(error: ServingError, reply: HttpReply, head: InferHead | undefined): void {
    const origin = head === undefined ? { model: '', version: '' } : this.#originOf(head);
    this.host.route.noteRefusal(error, reply, origin, this.#body?.filledBytes ?? 0);
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
    this.#replies.closeWith(reply);
  }

  /** Sends the rest, then waits a little for the client to close, reading what it still sends. */
  #end(): void {
    this.#state = 'ending';
    this.#rest = EMPTY;
    this.#times.moved();
    this.socket.end();
    this.socket.resume();
  }

  #handOver(): void {
    const { socket } = this;
    this.#state = 'gone';
    this.#times.letGo();
    socket.off('data', this.#onData);
    socket.off('end', this.#onEnd);
    socket.off('drain', this.#onRoom);
    socket.off('error', ignore);
    socket.off('close', this.#onClose);
    this.onGone(this);
    this.host.handOver(socket, this.#rest);
  }
}

function ignore(): void {
  // 'close' follows every 'error' and does what is to be done.
}
