/**
 * Closed loop over gRPC. Written on `node:http2`, because a grpc-js client costs more CPU per call than the server and
 * would be what is measured. Every answer's grpc-status is checked.
 */
import { once } from 'node:events';
import { connect, type ClientHttp2Session } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { benchModel } from '../models/catalog.js';
import { inferFrames, MODEL_INFER_PATH } from '../requests/grpc-request.js';
import type { LoadPlan, LoadResult } from './load-plan.js';
import { Recorder } from './recorder.js';
import { breaker, measureWindow } from './window.js';

const HEADERS = { ':method': 'POST', ':path': MODEL_INFER_PATH, 'content-type': 'application/grpc', te: 'trailers' };

interface CallEnd {
  readonly status: string;
  readonly answerBytes: number;
}

function call(session: ClientHttp2Session, frame: Buffer, onEnd: (end: CallEnd) => void): void {
  const stream = session.request(HEADERS, { endStream: false });
  let status = 'none';
  let answerBytes = 0;
  const readStatus = (headers: NodeJS.Dict<string | string[]>): void => {
    const found = headers['grpc-status'];
    if (typeof found === 'string') status = found;
  };
  stream.on('response', readStatus);
  stream.on('trailers', readStatus);
  stream.on('data', (chunk: Buffer) => {
    answerBytes += chunk.length;
  });
  stream.on('error', () => undefined); // 'close' follows with what is known
  stream.on('close', () => {
    onEnd({ status, answerBytes });
  });
  stream.end(frame);
}

export async function grpcClosedLoad(plan: Extract<LoadPlan, { kind: 'grpc-closed' }>, onWindowOpen: () => void): Promise<LoadResult> {
  const frames = inferFrames(benchModel(plan.model));
  const recorder = new Recorder();
  const { broken, break: breakLoad } = breaker();
  let sending = true;
  let next = 0;
  const sessions: ClientHttp2Session[] = [];
  for (let i = 0; i < plan.connections; i++) {
    const session = connect(`http://127.0.0.1:${plan.port}`, {
      createConnection: () => connectSocket({ port: plan.port, host: '127.0.0.1', noDelay: true }),
    });
    session.on('error', breakLoad);
    session.on('close', () => {
      if (sending) breakLoad(new Error('the server closed a connection'));
    });
    await once(session, 'connect');
    sessions.push(session);
  }
  const keepCalling = (session: ClientHttp2Session): void => {
    const frame = frames[next++ % frames.length];
    if (!sending || frame === undefined) return;
    const sentAtMs = performance.now();
    call(session, frame, ({ status, answerBytes }) => {
      if (status === '0' && answerBytes > 5) recorder.succeeded(sentAtMs, performance.now());
      else if (sending) recorder.failure(`grpc-status ${status}, ${answerBytes} bytes`);
      keepCalling(session);
    });
  };
  for (let i = 0; i < plan.inFlight; i++) {
    const session = sessions[i % sessions.length];
    if (session !== undefined) keepCalling(session);
  }
  try {
    return await measureWindow(plan, { recorder, broken, onWindowOpen });
  } finally {
    sending = false;
    for (const session of sessions) session.destroy();
  }
}
