/**
 * Sends one malformed request and judges what comes back. A finding is a text that says what is wrong; undefined means that
 * the server did what a server should: answer a client's fault as a client's fault, or end a connection that cannot be understood.
 */
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { AnswerReader, type HttpAnswer } from '../support/http-answers.js';
import type { GrpcCase, MalformedCase, SocketCase } from './case.js';

export interface Ports {
  readonly http: number;
  readonly grpc: number;
}

/** What became of a case: the status for the tally, and the finding if there is one. */
export interface Verdict {
  /** e.g. "400", "grpc 3", "closed". */
  readonly outcome: string;
  readonly finding: string | undefined;
}

const ANSWER_LIMIT_MS = 20_000;
/** What a client's fault, or a request that turned out well-formed, may end in. */
const GRPC_STATUSES: ReadonlyMap<number, string> = new Map([
  [0, 'OK'],
  [1, 'CANCELLED'],
  [3, 'INVALID_ARGUMENT'],
  [5, 'NOT_FOUND'],
  [7, 'PERMISSION_DENIED'],
  [8, 'RESOURCE_EXHAUSTED'],
  [11, 'OUT_OF_RANGE'],
  [12, 'UNIMPLEMENTED'],
]);

export function sendCase(attack: MalformedCase, ports: Ports): Promise<Verdict> {
  return attack.kind === 'socket' ? sendOnSocket(attack, ports[attack.port]) : sendCall(attack, ports.grpc);
}

function judgeAnswer({ status, headers, body }: HttpAnswer, { allowed = [] }: SocketCase): string | undefined {
  const start = body.toString('utf8', 0, 300);
  if (status >= 500 && !allowed.includes(status)) return `HTTP ${status}: ${start}`;
  if (status < 400 || body.length === 0) return undefined;
  if (!headers.get('content-type')?.startsWith('application/json'))
    return `HTTP ${status} with ${headers.get('content-type') ?? 'no content type'}: ${start}`;
  try {
    const { error } = JSON.parse(body.toString()) as { error?: unknown };
    return typeof error === 'string' && error !== '' ? undefined : `HTTP ${status} without an error text: ${start}`;
  } catch {
    return `HTTP ${status} with a body that is no JSON: ${start}`;
  }
}

async function writeAll(socket: Socket, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) {
    await new Promise<void>((resolve) => {
      // The server may have ended the connection already; what it said before counts.
      socket.write(piece, () => resolve());
      socket.once('close', () => resolve());
    });
  }
}

async function sendOnSocket(attack: SocketCase, port: number): Promise<Verdict> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const reader = new AnswerReader();
  const answers: HttpAnswer[] = [];
  let broken: string | undefined;
  const read = (take: () => HttpAnswer[]): void => {
    if (attack.port === 'grpc') return;
    try {
      answers.push(...take());
    } catch (error) {
      broken ??= String(error);
    }
  };
  const ended = await new Promise<'answered' | 'closed' | 'silent'>((resolve) => {
    const timer = setTimeout(() => resolve('silent'), ANSWER_LIMIT_MS);
    const settle = (how: 'answered' | 'closed'): void => {
      clearTimeout(timer);
      resolve(how);
    };
    socket.on('data', (chunk) => {
      read(() => reader.push(chunk));
      if (attack.expects !== 'nothing' && answers.length > 0) settle('answered');
    });
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', (hadError) => {
      if (!hadError && attack.expects !== 'nothing') read(() => reader.end());
      settle('closed');
    });
    void writeAll(socket, attack.pieces).then(() => {
      if (attack.expects === 'nothing') socket.end();
    });
  });
  socket.destroy();
  const outcome =
    answers.length > 0
      ? answers
          .map(({ status }) => status)
          .slice(0, 2)
          .join('+')
      : ended;
  const wrong = answers.map((answer) => judgeAnswer(answer, attack)).find((finding) => finding !== undefined);
  const missing = answers.length === 0 && (attack.expects === 'answer' || ended === 'silent') ? `no answer: ${ended}` : undefined;
  return { outcome, finding: broken ?? wrong ?? missing };
}

async function openSession(port: number): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    session.once('connect', () => resolve());
    session.once('close', () => resolve());
  });
  return session;
}

async function sendCall(attack: GrpcCase, port: number): Promise<Verdict> {
  const session = await openSession(port);
  const headers: Record<string, string> = {};
  const wanted: Record<string, string | undefined> = {
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/ModelInfer',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...attack.headers,
  };
  for (const [name, value] of Object.entries(wanted)) if (value !== undefined) headers[name] = value;
  const seen: { status?: string | undefined; text?: string | undefined; httpStatus?: string | undefined } = {};
  const note = (received: NodeJS.Dict<string | string[] | number>): void => {
    if (received[':status'] !== undefined) seen.httpStatus = String(received[':status']);
    if (received['grpc-status'] !== undefined) seen.status = String(received['grpc-status']);
    if (received['grpc-message'] !== undefined) seen.text = String(received['grpc-message']);
  };
  const ended = await new Promise<'closed' | 'silent'>((resolve) => {
    const timer = setTimeout(() => resolve('silent'), ANSWER_LIMIT_MS);
    const stream = session.request(headers, { endStream: false });
    stream.on('response', note);
    stream.on('trailers', note);
    stream.on('error', () => undefined); // 'close' follows
    stream.on('close', () => {
      clearTimeout(timer);
      resolve('closed');
    });
    stream.resume();
    stream.end(attack.body);
    if (attack.leaves) stream.close(8);
  });
  session.destroy();
  if (ended === 'silent') return { outcome: 'silent', finding: 'no answer' };
  if (seen.status === undefined) {
    const outcome = seen.httpStatus === undefined ? 'reset' : `HTTP ${seen.httpStatus}`;
    const mute = seen.httpStatus === undefined && !attack.mayReset && !attack.leaves;
    return { outcome, finding: Number(seen.httpStatus) >= 500 || mute ? `no status: ${outcome}` : undefined };
  }
  const code = Number(seen.status);
  const right = GRPC_STATUSES.has(code) || (attack.allowed ?? []).includes(code);
  return { outcome: `grpc ${code}`, finding: right ? undefined : `grpc-status ${code}: ${decodeURIComponent(seen.text ?? '')}` };
}
