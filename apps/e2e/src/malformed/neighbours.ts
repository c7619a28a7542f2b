/**
 * The well-behaved clients beside the attack: each sends one request after the other and compares every answer with what it
 * must be, to the byte. Invariant: an answer that differs in anything is a harm, and so is an error.
 */
import { GrpcInfer } from '../support/grpc-infer.js';
import { Draw } from '../support/draw.js';
import { KeepAliveConnection } from '../support/keep-alive.js';
import { inferPath, post } from '../support/http-text.js';
import type { Ports } from './send.js';

export interface NeighbourReport {
  readonly answered: number;
  /** What went wrong, one text per harmed request. */
  readonly harms: readonly string[];
  readonly slowestMs: number;
}

interface Question {
  readonly what: string;
  /** @returns the answer as text; `expected` is what it must be. */
  ask(): Promise<string>;
  readonly expected: string;
}

const int32 = (values: readonly number[]): Buffer => Buffer.from(Int32Array.from(values).buffer);
const float32 = (values: readonly number[]): Buffer => Buffer.from(Float32Array.from(values).buffer);

function jsonQuestion(connection: KeepAliveConnection, draw: Draw, id: string): Question {
  const rows = draw.int(1, 3);
  const data = Array.from({ length: rows }, () => draw.int(0, 3));
  const body = Buffer.from(JSON.stringify({ id, inputs: [{ name: 'INPUT0', datatype: 'INT64', shape: [rows, 1], data }] }));
  const output = { name: 'OUTPUT0', datatype: 'FP32', shape: [rows, 1], data: data.map((index) => (index + 1) * 10) };
  return {
    what: `gather over JSON, ${JSON.stringify(data)}`,
    expected: `200 ${JSON.stringify({ id, outputs: [output] })}`,
    ask: async () => {
      const { status, body: answer } = await connection.request(post(inferPath('gather'), body));
      const json = JSON.parse(answer.toString()) as { id?: string; outputs?: Record<string, unknown>[] };
      const outputs = json.outputs?.map(({ name, datatype, shape, data: found }) => ({ name, datatype, shape, data: found }));
      return `${status} ${JSON.stringify(outputs === undefined ? json : { id: json.id, outputs })}`;
    },
  };
}

function binaryQuestion(connection: KeepAliveConnection, draw: Draw, id: string): Question {
  const tail = float32(Array.from({ length: draw.int(1, 2000) }, () => draw.int(-4000, 4000) / 16));
  const shape = [1, tail.length / 4];
  const json = Buffer.from(
    JSON.stringify({
      id,
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape, parameters: { binary_data_size: tail.length } }],
      outputs: [{ name: 'OUTPUT0', parameters: { binary_data: true } }],
    }),
  );
  const bytes = post(inferPath('any_floats'), Buffer.concat([json, tail]), [['Inference-Header-Content-Length', String(json.length)]]);
  return {
    what: `any_floats in binary, ${tail.length} bytes`,
    expected: `200 ${tail.toString('hex')}`,
    ask: async () => {
      const { status, headers, body } = await connection.request(bytes);
      return `${status} ${status === 200 ? body.subarray(Number(headers.get('inference-header-content-length'))).toString('hex') : body.toString()}`;
    },
  };
}

function grpcQuestion(client: GrpcInfer, draw: Draw, id: string): Question {
  const side = (): number[] => Array.from({ length: 16 }, () => draw.int(-1000, 1000));
  const [a, b] = [side(), side()];
  const input = (name: string, values: readonly number[]): Parameters<GrpcInfer['infer']>[2][number] => ({
    name,
    datatype: 'INT32',
    shape: [1, 16],
    data: int32(values),
  });
  const expected = [a.map((value, i) => value + b[i]!), a.map((value, i) => value - b[i]!)].map((values) => int32(values).toString('hex'));
  return {
    what: 'add_sub over gRPC',
    expected: `${id} ${expected.join(' ')}`,
    ask: async () => {
      const answer = await client.infer('add_sub', id, [input('INPUT0', a), input('INPUT1', b)]);
      return `${answer.id} ${answer.outputs.map(({ data }) => data.toString('hex')).join(' ')}`;
    },
  };
}

export class Neighbours {
  readonly #harms: string[] = [];
  readonly #running: Promise<void>[];
  readonly #clients: { close(): void }[] = [];
  #answered = 0;
  #slowestMs = 0;
  #ending = false;

  constructor(ports: Ports, seed: number) {
    const http = (): KeepAliveConnection => this.#owned(new KeepAliveConnection(ports.http));
    const grpc = this.#owned(new GrpcInfer(`127.0.0.1:${ports.grpc}`));
    const asks = [
      ...Array.from({ length: 4 }, () => jsonQuestion.bind(undefined, http())),
      binaryQuestion.bind(undefined, http()),
      grpcQuestion.bind(undefined, grpc),
    ];
    this.#running = asks.map((ask, i) =>
      this.#keepAsking((number) => ask(new Draw(seed, 1_000_000 * (i + 1) + number), `n${i}-${number}`)),
    );
  }

  /** Lets the requests in flight finish. */
  async end(): Promise<NeighbourReport> {
    this.#ending = true;
    await Promise.all(this.#running);
    for (const client of this.#clients) client.close();
    return { answered: this.#answered, harms: this.#harms, slowestMs: this.#slowestMs };
  }

  #owned<T extends { close(): void }>(client: T): T {
    this.#clients.push(client);
    return client;
  }

  async #keepAsking(question: (number: number) => Question): Promise<void> {
    for (let number = 0; !this.#ending && this.#harms.length < 20; number++) {
      const { what, ask, expected } = question(number);
      const askedAtMs = performance.now();
      const found = await ask().catch(String);
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - askedAtMs);
      this.#answered++;
      if (found !== expected) this.#harms.push(`${what}: expected ${expected.slice(0, 200)}, found ${found.slice(0, 400)}`);
    }
  }
}
