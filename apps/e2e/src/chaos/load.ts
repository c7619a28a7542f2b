/**
 * Load that believes nothing: every request carries numbers of its own, every answer is compared with them, and each request
 * ends in exactly one entry of the books: right, refused where refusing is allowed, or a breach.
 */
import { GrpcInfer } from '../support/grpc-infer.js';
import { Draw } from '../support/draw.js';
import { ConnectionLostError, KeepAliveConnection } from '../support/keep-alive.js';
import { inferPath, post } from '../support/http-text.js';

export interface LoadTarget {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly model: string;
}

interface Request {
  readonly id: string;
  /** One row each; the answer must repeat them. */
  readonly values: readonly number[];
  /** Work of each row, see the testkit's slow model. */
  readonly iterations: number;
}

/** A request that did not get its answer, in a form the rules can judge. */
type Refusal = 'said unavailable' | 'connection refused' | 'connection ended before an answer';

type Outcome =
  { readonly kind: 'right' } | { readonly kind: 'refused'; readonly how: Refusal } | { readonly kind: 'breach'; readonly text: string };

/** How long a request may be on its way to a server whose socket is read late. */
const CROSSING_MS = 50;

interface Client {
  send(request: Request): Promise<Outcome>;
  close(): void;
}

const GRPC_UNAVAILABLE = 14;
const column = (count: number): number[] => [count, 1];

function judge(found: string, expected: string): Outcome {
  return found === expected ? { kind: 'right' } : { kind: 'breach', text: `expected ${expected}, found ${found.slice(0, 300)}` };
}

class HttpClient implements Client {
  readonly #connection: KeepAliveConnection;

  constructor(private readonly target: LoadTarget) {
    this.#connection = new KeepAliveConnection(target.httpPort);
  }

  async send({ id, values, iterations }: Request): Promise<Outcome> {
    const shape = column(values.length);
    const inputs = [
      { name: 'INPUT0', datatype: 'FP32', shape, data: values },
      { name: 'ITERS', datatype: 'INT64', shape, data: values.map(() => iterations) },
    ];
    try {
      const answer = await this.#connection.request(post(inferPath(this.target.model), Buffer.from(JSON.stringify({ id, inputs }))));
      if (answer.status === 503) return { kind: 'refused', how: 'said unavailable' };
      const json = JSON.parse(answer.body.toString()) as { id?: string; outputs?: { data: number[] }[] };
      return judge(`${answer.status} ${json.id} ${JSON.stringify(json.outputs?.[0]?.data ?? json)}`, `200 ${id} ${JSON.stringify(values)}`);
    } catch (error) {
      if (!(error instanceof ConnectionLostError) || error.answerBytes > 0) return { kind: 'breach', text: String(error) };
      return { kind: 'refused', how: error.sent ? 'connection ended before an answer' : 'connection refused' };
    }
  }

  close(): void {
    this.#connection.close();
  }
}

class GrpcClient implements Client {
  readonly #client: GrpcInfer;

  constructor(private readonly target: LoadTarget) {
    this.#client = new GrpcInfer(`127.0.0.1:${target.grpcPort}`);
  }

  async send({ id, values, iterations }: Request): Promise<Outcome> {
    const shape = column(values.length);
    const data = Buffer.from(Float32Array.from(values).buffer);
    const counts = Buffer.from(BigInt64Array.from(values, () => BigInt(iterations)).buffer);
    try {
      const answer = await this.#client.infer(this.target.model, id, [
        { name: 'INPUT0', datatype: 'FP32', shape, data },
        { name: 'ITERS', datatype: 'INT64', shape, data: counts },
      ]);
      return judge(`${answer.id} ${answer.outputs[0]?.data.toString('hex')}`, `${id} ${data.toString('hex')}`);
    } catch (error) {
      const { code, details } = error as { code?: number; details?: string };
      return code === GRPC_UNAVAILABLE
        ? { kind: 'refused', how: 'said unavailable' }
        : { kind: 'breach', text: `grpc-status ${code}: ${details}` };
    }
  }

  close(): void {
    this.#client.close();
  }
}

export interface Books {
  readonly right: number;
  readonly breaches: readonly string[];
  /** Refusals after the server was told to end, by kind. */
  readonly refused: Readonly<Partial<Record<Refusal, number>>>;
}

export class ChaosLoad {
  readonly #breaches: string[] = [];
  readonly #refused: Partial<Record<Refusal, number>> = {};
  readonly #clients: Client[] = [];
  #right = 0;
  #lanes: Promise<void>[] = [];
  #pausing = false;
  /** On the clock of `performance.now()`: requests sent from then on may be refused. */
  #endingAtMs = Number.POSITIVE_INFINITY;
  #waiters: { readonly at: number; resolve(): void }[] = [];
  #next = 1;
  readonly #draw: Draw;

  constructor(
    private readonly target: LoadTarget,
    seed: number,
    counts: { readonly http: number; readonly grpc: number },
  ) {
    this.#draw = new Draw(seed);
    for (let i = 0; i < counts.http; i++) this.#clients.push(new HttpClient(target));
    for (let i = 0; i < counts.grpc; i++) this.#clients.push(new GrpcClient(target));
  }

  get books(): Books {
    return { right: this.#right, breaches: this.#breaches, refused: this.#refused };
  }

  start(): void {
    this.#pausing = false;
    this.#lanes = this.#clients.map((client) => this.#keepSending(client));
  }

  /** Resolves when nothing is in flight any more. */
  async pause(): Promise<void> {
    this.#pausing = true;
    await Promise.all(this.#lanes);
  }

  /** Resolves after `count` more right answers. */
  answered(count: number): Promise<void> {
    return new Promise((resolve) => this.#waiters.push({ at: this.#right + count, resolve }));
  }

  /** From now on requests may be refused; those sent before may not. A client that was refused stops. */
  serverMayEnd(): void {
    this.#endingAtMs = performance.now();
  }

  /** One request on a connection of its own that works `iterations` long. Counted like the others. */
  async single(iterations: number): Promise<void> {
    const client = new HttpClient(this.target);
    await this.#send(client, iterations);
    client.close();
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  async #keepSending(client: Client): Promise<void> {
    while (!this.#pausing && (await this.#send(client, this.#draw.int(1, 40))));
  }

  /** @returns whether the client may go on */
  async #send(client: Client, iterations: number): Promise<boolean> {
    const number = this.#next++;
    const values = Array.from({ length: this.#draw.int(1, 3) }, (_, row) => number * 4 + row);
    const sentAtMs = performance.now();
    const outcome = await client.send({ id: `r${number}`, values, iterations });
    const sent = `request r${number}, sent ${(performance.now() - sentAtMs).toFixed(0)} ms before`;
    switch (outcome.kind) {
      case 'right':
        this.#right++;
        for (const waiter of this.#waiters.filter(({ at }) => at <= this.#right)) waiter.resolve();
        this.#waiters = this.#waiters.filter(({ at }) => at > this.#right);
        return true;
      case 'breach':
        this.#breaches.push(`${sent}: ${outcome.text}`);
        return this.#breaches.length < 50;
      case 'refused':
        // A request may cross the server's goodbye, on a busy machine for a while; what it had been given before must be answered.
        if (sentAtMs < this.#endingAtMs - CROSSING_MS) this.#breaches.push(`${sent}: ${outcome.how}`);
        else this.#refused[outcome.how] = (this.#refused[outcome.how] ?? 0) + 1;
        return false;
    }
  }
}
