/**
 * Limits of the gRPC server that take hold below the gRPC library: connections, and the memory of messages, which are
 * counted against the byte budget by the length that precedes each of them, before they are read. The library hands
 * out whole messages only, so this listens on its HTTP/2 servers. Invariant: what is reserved for a call is given back
 * when its stream closes at the latest.
 */
import { constants, type Http2Server, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { status, type Server } from '@grpc/grpc-js';
import type { ServingError } from '@paceline/protocol';
import { ERROR_CODES } from '@paceline/protocol';
import { BUDGET_ABOVE_BYTES, type ByteBudget } from '../infer/byte-budget.js';
import { retryTrailers } from './grpc-status.js';

export interface StreamLimits {
  readonly maxMessageBytes: number;
  readonly maxConnections: number;
  /** Without a byte of an unfinished message. */
  readonly stallTimeoutS: number;
  readonly budget: ByteBudget;
  /** Told of each request that is turned away here, with a stable reason. */
  readonly onRefused: (reason: string) => void;
}

/** Its highest stream id says "no new streams" and disowns none of those under way (RFC 9113, 6.8). */
const ANY_STREAM = 2 ** 31 - 1;

export class StreamGuard {
  readonly #sessions = new Set<Http2Session>();

  constructor(private readonly limits: StreamLimits) {}

  /** Open connections. */
  get connectionCount(): number {
    return this.#sessions.size;
  }

  /** To be called once `server` is bound. @throws Error where the library keeps its servers elsewhere than it did */
  watch(server: Server): void {
    const { http2Servers } = server as unknown as { readonly http2Servers?: unknown };
    if (!(http2Servers instanceof Map)) throw new Error('the gRPC library has no http2Servers: its limits cannot be set. This is a bug.');
    for (const http2Server of http2Servers.keys() as Iterable<Http2Server>) {
      http2Server.maxConnections = this.limits.maxConnections;
      http2Server.on('session', (session) => this.#onSession(session));
      http2Server.prependListener('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
        const streams = headers[':path']?.endsWith('StreamInfer') === true;
        new MessageMeter(stream, this.limits, streams);
      });
    }
  }

  /**
   * Asks every client to open no more calls on its connection; those under way go on. A client that connects afterwards
   * hears the same from each call: told at once, it would only come again.
   */
  beginDrain(): void {
    for (const session of this.#sessions) goAway(session);
  }

  #onSession(session: Http2Session): void {
    this.#sessions.add(session);
    session.on('close', () => this.#sessions.delete(session));
  }
}

function goAway(session: Http2Session): void {
  if (!session.closed && !session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR, ANY_STREAM);
}

/** Bytes before each message: whether it is compressed, and its length, big-endian. */
const PREFIX_BYTES = 5;

/** Reads the lengths of the messages of one stream, beside the library, which reads the messages. */
class MessageMeter {
  #prefixBytes = 0;
  #length = 0;
  /** Of the message that is being read. */
  #leftBytes = 0;
  #reservedBytes = 0;
  #timed = false;

  constructor(
    private readonly stream: ServerHttp2Stream,
    private readonly limits: StreamLimits,
    /** Each message is handed on when it is complete; else there is one, which is kept until it is answered. */
    private readonly streams: boolean,
  ) {
    stream.on('data', (piece: Buffer) => this.#onData(piece));
  }

  #onData(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      if (this.#leftBytes === 0) {
        const byte = piece[at++] as number;
        if (this.#prefixBytes > 0) this.#length = this.#length * 256 + byte;
        this.#prefixBytes += 1;
        if (this.#prefixBytes < PREFIX_BYTES) continue;
        this.#leftBytes = this.#length;
        this.#prefixBytes = 0;
        this.#length = 0;
        if (this.#leftBytes > BUDGET_ABOVE_BYTES && !this.#begin(this.#leftBytes)) return;
      }
      const used = Math.min(this.#leftBytes, piece.length - at);
      at += used;
      this.#leftBytes -= used;
      if (this.#leftBytes === 0 && this.streams) this.#release();
    }
    this.#watchStall(this.#leftBytes > 0 || this.#prefixBytes > 0);
  }

  /** @returns whether the message may be read */
  #begin(bytes: number): boolean {
    const { maxMessageBytes, budget } = this.limits;
    if (bytes > maxMessageBytes) {
      this.#refuse(
        status.RESOURCE_EXHAUSTED,
        `request message of ${bytes} bytes exceeds the maximum allowed input size of ${maxMessageBytes} bytes. Use --http-max-input-size to increase the limit.`,
        'body_too_large',
      );
      return false;
    }
    if (!budget.reserve(bytes)) {
      const error = budget.refusal(bytes);
      this.#refuse(ERROR_CODES[error.code], error.message, error.reason, error);
      return false;
    }
    if (this.#reservedBytes === 0) this.stream.once('close', () => this.#release());
    this.#reservedBytes += bytes;
    return true;
  }

  #release(): void {
    this.limits.budget.release(this.#reservedBytes);
    this.#reservedBytes = 0;
  }

  #watchStall(unfinished: boolean): void {
    if (unfinished === this.#timed) return;
    this.#timed = unfinished;
    const { stallTimeoutS } = this.limits;
    this.stream.setTimeout(unfinished ? stallTimeoutS * 1000 : 0, this.#onStall);
  }

  readonly #onStall = (): void => {
    this.#refuse(
      status.DEADLINE_EXCEEDED,
      `request message is incomplete: nothing of its last ${this.#leftBytes} bytes came in ${this.limits.stallTimeoutS} s (--http-stall-timeout-secs)`,
      'body_stalled',
    );
  };

  /** Answers in the library's place, which sees a stream that has closed. */
  #refuse(code: number, text: string, reason: string, error?: ServingError): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed || stream.headersSent) return;
    this.limits.onRefused(reason);
    const trailers = { 'grpc-status': code, 'grpc-message': encodeURI(text), ...(error && retryTrailers(error)) };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto', ...trailers }, { endStream: true });
    stream.close(constants.NGHTTP2_NO_ERROR);
  }
}
