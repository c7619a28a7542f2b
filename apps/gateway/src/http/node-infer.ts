/**
 * The infer route on node:http's request and response, for requests that the bare-socket parser leaves alone (chunked
 * bodies, Expect, odd headers). Reads the body itself, so that limits and texts are the same on both ways in.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServingError } from '@paceline/protocol';
import { grantOf } from '../access/http-access.js';
import { BUDGET_ABOVE_BYTES, type ByteBudget } from '../infer/byte-budget.js';
import { TIMEOUT_HEADER } from '../infer/time-limit.js';
import { bodyTooLargeText } from './data-plane-limits.js';
import { errorReply, type HttpReply } from './infer-reply.js';
import type { CancelInfer, InferOrigin, InferRoute } from './infer-route.js';
import { peerOf } from './peer.js';

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0];
}

function send(response: ServerResponse, reply: HttpReply, close: boolean): void {
  if (response.destroyed) return;
  const content = reply.chunks.length === 0 ? Buffer.from(reply.text) : Buffer.concat([Buffer.from(reply.text), ...reply.chunks]);
  for (const [name, value] of reply.headers) response.setHeader(name, value);
  if (close) response.setHeader('Connection', 'close');
  response.writeHead(reply.status, { 'Content-Length': content.length });
  response.end(content);
}

/** What a body may take here. */
export interface NodeInferLimits {
  readonly maxInputBytes: number;
  /** Without progress of a response that the client does not take. */
  readonly stallTimeoutS: number;
  /** Memory for bodies, shared with other ways in; unlimited without it. */
  readonly budget?: ByteBudget;
}

/** Counts a body against the budget: as announced before it is read, else as it grows. */
class Reservation {
  #bytes = 0;

  constructor(private readonly budget: ByteBudget | undefined) {}

  /** @returns whether the body may have that many bytes */
  extend(bytes: number): boolean {
    const { budget } = this;
    if (budget === undefined || bytes <= BUDGET_ABOVE_BYTES || bytes <= this.#bytes) return true;
    if (!budget.reserve(bytes - this.#bytes)) return false;
    this.#bytes = bytes;
    return true;
  }

  release(): void {
    this.budget?.release(this.#bytes);
    this.#bytes = 0;
  }
}

/** Collects the body; `done` is not called when the client leaves first or `admit` refuses a size. */
function readBody(request: IncomingMessage, admit: (bytes: number) => boolean, done: (body: Buffer) => void): void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const onData = (piece: Buffer): void => {
    bytes += piece.length;
    if (admit(bytes)) {
      pieces.push(piece);
      return;
    }
    request.off('data', onData);
    request.off('end', onEnd);
    request.resume();
  };
  const onEnd = (): void => done(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, bytes));
  request.on('data', onData);
  request.on('end', onEnd);
}

/**
 * Answers one request; never throws.
 * @param version "" where the path names none
 */
export function serveNodeInfer(
  route: InferRoute,
  request: IncomingMessage,
  response: ServerResponse,
  model: string,
  version: string,
  { maxInputBytes, stallTimeoutS, budget }: NodeInferLimits,
): void {
  const origin: InferOrigin = {
    model,
    version,
    peer: route.logsAccess ? peerOf(request.socket) : undefined,
    traceparent: single(request.headers['traceparent']),
  };
  const reservation = new Reservation(budget);
  const refuse = (error: ServingError): false => {
    const reply = errorReply(error);
    route.noteRefusal(error, reply, origin, 0);
    send(response, reply, true);
    return false;
  };
  const admit = (bytes: number): boolean => {
    if (bytes > maxInputBytes) {
      return refuse(
        new ServingError('INVALID_ARGUMENT', bodyTooLargeText(bytes, maxInputBytes), { reason: 'body_too_large', httpStatus: 413 }),
      );
    }
    return reservation.extend(bytes) || refuse((budget as ByteBudget).refusal(bytes));
  };
  let cancel: CancelInfer | undefined;
  response.on('close', () => {
    reservation.release();
    cancel?.();
  });
  if (!admit(Number(request.headers['content-length'] ?? 0))) return;
  const run = (body: Buffer): void => {
    cancel = route.handle(
      {
        ...origin,
        inferenceHeaderLength: single(request.headers['inference-header-content-length']),
        contentEncoding: single(request.headers['content-encoding']),
        acceptEncoding: single(request.headers['accept-encoding']),
        requestTimeout: single(request.headers[TIMEOUT_HEADER]),
        body,
        grant: grantOf(request),
      },
      (reply) => {
        response.setTimeout(stallTimeoutS * 1000, () => response.destroy());
        send(response, reply, false);
      },
    );
  };
  readBody(request, admit, run);
}
