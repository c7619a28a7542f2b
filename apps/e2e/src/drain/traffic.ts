/**
 * Clients that load a server at full speed until it sends them away, each over connections that it keeps: what a rolling
 * restart meets. Invariant: each request is counted once, as answered with its own right result, as refused, or as lost:
 * sent on an open connection and neither.
 */
import { connect } from 'node:net';
import { GrpcInfer } from '../support/grpc-infer.js';
import { AnswerReader, type HttpAnswer } from '../support/http-answers.js';
import { InferStream } from './infer-stream.js';

export class Tally {
  answered = 0;
  refused = 0;
  /** What went wrong, one line each. */
  readonly lost: string[] = [];
}

const MODEL = 'identity_int32';

const bodyOf = (x: number): string =>
  JSON.stringify({ id: String(x), inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1, 4], data: [x, x + 1, 7, -x] }] });

/** @returns whether the client may go on */
function judge(tally: Tally, x: number, status: number, text: string): boolean {
  if (status === 503) {
    tally.refused += 1;
    return false;
  }
  const { id, outputs } = JSON.parse(text) as { id?: string; outputs?: { data: number[] }[] };
  const right = status === 200 && id === String(x) && outputs?.[0]?.data.join() === [x, x + 1, 7, -x].join();
  if (right) tally.answered += 1;
  else tally.lost.push(`HTTP ${status}: ${text}`);
  return right;
}

const codeOf = (error: unknown): string => {
  const { code, cause } = error as { code?: string; cause?: { code?: string; message?: string } };
  return cause?.code ?? code ?? cause?.message ?? String(error);
};

/** One request after the other by fetch, whose connections are kept alive. */
export async function fetchLoop(http: string, tally: Tally, from: number): Promise<void> {
  for (let x = from; ; x++) {
    try {
      const response = await fetch(`http://${http}/v2/models/${MODEL}/infer`, { method: 'POST', body: bodyOf(x) });
      if (!judge(tally, x, response.status, await response.text())) return;
    } catch (error) {
      // Never connected: nothing reached the server.
      if (codeOf(error) !== 'ECONNREFUSED') tally.lost.push(`fetch: ${codeOf(error)}`);
      return;
    }
  }
}

/** Bursts of requests in one piece on one connection; the next burst follows the last answer. */
export async function pipelineLoop(http: string, tally: Tally, from: number, burst: number): Promise<void> {
  const [host = '', port] = http.split(':');
  const socket = connect({ host, port: Number(port), noDelay: true });
  const reader = new AnswerReader();
  const answers: HttpAnswer[] = [];
  let wake = (): void => undefined;
  let closed = false;
  socket.on('data', (chunk) => {
    answers.push(...reader.push(chunk));
    wake();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
    wake();
  });
  const send = (x: number): string => {
    const body = bodyOf(x);
    return `POST /v2/models/${MODEL}/infer HTTP/1.1\r\nHost: t\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  for (let x = from; ; x += burst) {
    if (closed) break; // between two bursts: a connection without a request
    socket.write(Array.from({ length: burst }, (_, i) => send(x + i)).join(''));
    let ends = false;
    for (let i = 0; i < burst; i++) {
      while (answers.length === 0 && !closed) await new Promise<void>((resolve) => (wake = resolve));
      const answer = answers.shift();
      if (answer === undefined) {
        tally.lost.push(`pipeline: ${burst - i} of ${burst} requests without an answer`);
        return;
      }
      judge(tally, x + i, answer.status, answer.body.toString());
      if (answer.headers.get('connection') === 'close') {
        ends = true;
        if (i < burst - 1) tally.lost.push(`pipeline: closed behind answer ${i + 1} of ${burst}`);
      }
    }
    if (ends) break;
  }
  socket.destroy();
}

const int32 = (x: number): Buffer => Buffer.from(Int32Array.of(x, x + 1, 7, -x).buffer);
const UNAVAILABLE = 14;

/** One call after the other on one channel. */
export async function grpcLoop(grpc: string, tally: Tally, from: number): Promise<void> {
  const client = new GrpcInfer(grpc);
  for (let x = from; ; x++) {
    try {
      const answer = await client.infer(MODEL, String(x), [{ name: 'INPUT0', datatype: 'INT32', shape: [1, 4], data: int32(x) }]);
      if (answer.id === String(x) && answer.outputs[0]?.data.equals(int32(x))) tally.answered += 1;
      else tally.lost.push(`gRPC: wrong answer to ${x}`);
    } catch (error) {
      const { code, details } = error as { code: number; details: string };
      if (code === UNAVAILABLE) tally.refused += 1;
      else tally.lost.push(`gRPC: ${code} ${details}`);
      break;
    }
  }
  client.close();
}

/** Keeps `window` requests of one stream under way. Ends when the server ends the stream. */
export async function streamLoop(grpc: string, tally: Tally, from: number, window: number): Promise<void> {
  const stream = new InferStream(grpc);
  const asked: number[] = [];
  let next = from;
  const ask = (): void => {
    stream.send(MODEL, String(next), { name: 'INPUT0', datatype: 'INT32', shape: [1, 4], data: int32(next) });
    asked.push(next++);
  };
  for (let i = 0; i < window; i++) ask();
  const status = await stream.run((id, data, error) => {
    const x = asked.shift() as number;
    if (error !== '') tally.refused += 1;
    else if (id === String(x) && data.equals(int32(x))) tally.answered += 1;
    else tally.lost.push(`stream: answer ${id} to ${x}`);
    ask();
  });
  // What was asked and not answered is refused with the stream.
  if (status === UNAVAILABLE) tally.refused += 1;
  else tally.lost.push(`stream: ended with status ${status}`);
}
