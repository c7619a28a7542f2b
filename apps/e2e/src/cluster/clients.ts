/**
 * Clients of one gateway, one request in flight each: HTTP with JSON, HTTP with binary tensors, gRPC. Each tells how its
 * request ended and nothing else; whether it was allowed to end so is for the books.
 */
import { ConnectionLostError, KeepAliveConnection } from '../support/keep-alive.js';
import { GrpcInfer, type RawInput } from '../support/grpc-infer.js';
import { inferPath, post } from '../support/http-text.js';
import { float32, stringElement, type Question } from './questions.js';

/** How one request ended. */
export type Outcome =
  | { readonly kind: 'right' }
  /** An explicit error: the name of its status code, and what it said. */
  | { readonly kind: 'refused'; readonly code: string; readonly text: string }
  /** The connection ended under a request that had been sent. */
  | { readonly kind: 'cut' }
  /**
   * The system made the connection for the request, and it ended before a byte of an answer: a process that closes its
   * port never sees the connections that wait behind it.
   */
  | { readonly kind: 'unseen' }
  /** Nothing of the request was sent: nobody listened. */
  | { readonly kind: 'unreached' }
  /** An answer that is not the one to this question, or none at all that the protocol knows. */
  | { readonly kind: 'wrong'; readonly text: string };

export interface Client {
  /** Never rejects. */
  send(question: Question): Promise<Outcome>;
  /** Ends the connection; the next request opens another. */
  reset(): void;
  /** Whether the connection stays open after the answer that came last. */
  readonly isOpen: boolean;
}

export type ClientKind = 'json' | 'binary' | 'grpc';

export function makeClient(kind: ClientKind, ports: { readonly http: number; readonly grpc: number }): Client {
  return kind === 'grpc' ? new GrpcClient(ports.grpc) : new HttpClient(ports.http, kind === 'binary');
}

const HTTP_CODES = new Map([
  [429, 'RESOURCE_EXHAUSTED'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);
const GRPC_CODES = new Map([
  [4, 'DEADLINE_EXCEEDED'],
  [8, 'RESOURCE_EXHAUSTED'],
  [14, 'UNAVAILABLE'],
]);
/** What grpc-js says of itself, beside what a server may say under the same code. */
const CALL_CUT = /^(Connection dropped|read ECONNRESET|write EPIPE|Received RST_STREAM|Call ended without)/;
const CALL_UNREACHED = /^(No connection established|connect ECONNREFUSED|Name resolution|Failed to connect)/;

function judge(question: Question, id: string | undefined, outputs: ReadonlyMap<string, Buffer>): Outcome {
  const found = [...outputs].map(([name, data]) => `${name}=${data.toString('hex')}`).join();
  const expected = [...question.expected].map(([name, data]) => `${name}=${data.toString('hex')}`).join();
  if (id === question.id && found === expected) return { kind: 'right' };
  const short = (text: string): string => (text.length > 120 ? `${text.slice(0, 120)}...` : text);
  return { kind: 'wrong', text: `expected ${question.id} ${short(expected)}, found ${id} ${short(found)}` };
}

interface JsonTensor {
  readonly name: string;
  readonly datatype: string;
  readonly data?: readonly (number | string)[];
  readonly parameters?: { readonly binary_data_size?: number };
}

class HttpClient implements Client {
  readonly #connection: KeepAliveConnection;

  constructor(
    port: number,
    private readonly binary: boolean,
  ) {
    this.#connection = new KeepAliveConnection(port);
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  reset(): void {
    this.#connection.close();
  }

  async send(question: Question): Promise<Outcome> {
    try {
      const { status, headers, body } = await this.#connection.request(this.binary ? binaryRequest(question) : jsonRequest(question));
      if (status !== 200) return refusal(status, body.toString());
      const jsonBytes = Number(headers.get('inference-header-content-length') ?? body.length);
      const { id, outputs = [] } = JSON.parse(body.toString('utf8', 0, jsonBytes)) as { id?: string; outputs?: JsonTensor[] };
      let at = jsonBytes;
      const found = outputs.map((output) => {
        const size = output.parameters?.binary_data_size;
        if (size === undefined) return [output.name, bytesOf(output)] as const;
        return [output.name, body.subarray(at, (at += size))] as const;
      });
      if (at !== body.length) return { kind: 'wrong', text: `${body.length - at} bytes behind the outputs` };
      return judge(question, id, new Map(found));
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) return { kind: 'wrong', text: String(error) };
      if (!error.sent) return { kind: 'unreached' };
      return { kind: error.isFirst && error.answerBytes === 0 ? 'unseen' : 'cut' };
    }
  }
}

function refusal(status: number, body: string): Outcome {
  const code = HTTP_CODES.get(status) ?? `HTTP ${status}`;
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    if (typeof error === 'string' && error !== '') return { kind: 'refused', code, text: error };
  } catch {
    // Told below.
  }
  return { kind: 'wrong', text: `HTTP ${status} without an error that could be read: ${body.slice(0, 120)}` };
}

function jsonRequest({ id, model, inputs }: Question): Buffer {
  const tensors = inputs.map(({ name, datatype, shape, data }) => ({ name, datatype, shape, data: valuesOf({ datatype, data }) }));
  return post(inferPath(model), Buffer.from(JSON.stringify({ id, inputs: tensors })));
}

function binaryRequest({ id, model, inputs }: Question): Buffer {
  const tensors = inputs.map(({ name, datatype, shape, data }) => ({
    name,
    datatype,
    shape,
    parameters: { binary_data_size: data.length },
  }));
  const json = Buffer.from(JSON.stringify({ id, inputs: tensors, parameters: { binary_data_output: true } }));
  const body = Buffer.concat([json, ...inputs.map(({ data }) => data)]);
  return post(inferPath(model), body, [['Inference-Header-Content-Length', String(json.length)]]);
}

function valuesOf({ datatype, data }: Pick<RawInput, 'datatype' | 'data'>): (number | string)[] {
  if (datatype === 'BYTES') return [data.toString('utf8', 4)];
  return Array.from({ length: data.length / 4 }, (_, i) => data.readFloatLE(4 * i));
}

function bytesOf({ datatype, data = [] }: JsonTensor): Buffer {
  return datatype === 'BYTES' ? Buffer.concat(data.map((text) => stringElement(String(text)))) : float32(data.map(Number));
}

class GrpcClient implements Client {
  #client: GrpcInfer | undefined;

  constructor(private readonly port: number) {}

  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  reset(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  async send(question: Question): Promise<Outcome> {
    this.#client ??= new GrpcInfer(`127.0.0.1:${this.port}`);
    try {
      const { id, outputs } = await this.#client.infer(question.model, question.id, question.inputs);
      return judge(question, id, new Map(outputs.map(({ name, data }) => [name, data])));
    } catch (error) {
      const { code = -1, details = String(error) } = error as { code?: number; details?: string };
      // A channel that lost its server would wait longer and longer before it tries again.
      this.reset();
      if (CALL_UNREACHED.test(details)) return { kind: 'unreached' };
      if (CALL_CUT.test(details)) return { kind: 'cut' };
      return { kind: 'refused', code: GRPC_CODES.get(code) ?? `grpc-status ${code}`, text: details };
    }
  }
}
