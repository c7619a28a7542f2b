/**
 * The infer route on node:http's request and response, for requests that the bare-socket parser leaves alone (chunked
 * bodies, Expect, odd headers). Reads the body itself, so that limits and texts are the same on both ways in.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServingError } from '@paceline/protocol';
import { grantOf } from '../access/http-access.js';
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

/** Collects the body; `done` is not called when the client leaves first or the body is too large. */
function readBody(request: IncomingMessage, maxBytes: number, done: (body: Buffer) => void, tooLarge: (bytes: number) => void): void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const onData = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes <= maxBytes) {
      pieces.push(piece);
      return;
    }
    request.off('data', onData);
    request.off('end', onEnd);
    request.resume();
    tooLarge(bytes);
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
  maxInputBytes: number,
): void {
  const origin: InferOrigin = {
    model,
    version,
    peer: route.logsAccess ? peerOf(request.socket) : undefined,
    traceparent: single(request.headers['traceparent']),
  };
  const refuse = (bytes: number): void => {
    const error = new ServingError('INVALID_ARGUMENT', bodyTooLargeText(bytes, maxInputBytes), {
      reason: 'body_too_large',
      httpStatus: 413,
    });
    const reply = errorReply(error);
    route.noteRefusal(error, reply, origin, 0);
    send(response, reply, true);
  };
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > maxInputBytes) {
    refuse(announced);
    return;
  }
  let cancel: CancelInfer | undefined;
  response.on('close', () => cancel?.());
  const run = (body: Buffer): void => {
    cancel = route.handle(
      {
        ...origin,
        inferenceHeaderLength: single(request.headers['inference-header-content-length']),
        contentEncoding: single(request.headers['content-encoding']),
        acceptEncoding: single(request.headers['accept-encoding']),
        body,
        grant: grantOf(request),
      },
      (reply) => send(response, reply, false),
    );
  };
  readBody(request, maxInputBytes, run, refuse);
}
