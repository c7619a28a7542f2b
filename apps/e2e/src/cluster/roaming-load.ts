/**
 * Clients as they stand behind a list of gateways: one that is sent away, or finds nobody, asks the next gateway the same
 * question. Invariant: a request that was sent on a connection that a gateway has answered on, and got no answer, has failed; so has
 * one that no gateway took.
 */
import { makeClient, type Client, type ClientKind, type Outcome } from './clients.js';
import { ECHO, question, TRIPLE, WIDE, type Question } from './questions.js';

const KINDS: readonly ClientKind[] = ['json', 'binary', 'grpc'];
/** A client goes from one model to the next. */
const MODELS = [ECHO, TRIPLE, ECHO, WIDE];

export class RoamingLoad {
  readonly failed: string[] = [];
  right = 0;
  /** Requests that another gateway had to be asked for. */
  moved = 0;
  /** Requests that reached a port while it closed, so that the process never saw them: few of each restart. */
  unseen = 0;
  /** Of the request that took longest, gateways that sent it away included. */
  longestMs = 0;
  #next = 1;
  #stopping = false;
  #running: Promise<unknown> = Promise.resolve();
  #waiters: { readonly at: number; resolve(): void }[] = [];

  constructor(
    private readonly gateways: readonly { readonly http: number; readonly grpc: number }[],
    private readonly clients: number,
  ) {}

  start(): void {
    this.#running = Promise.all(Array.from({ length: this.clients }, (_, i) => this.#client(i)));
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  /** Resolves after `count` more right answers, or when a request has failed. */
  answered(count: number): Promise<void> {
    return new Promise((resolve) => this.#waiters.push({ at: this.right + count, resolve }));
  }

  async #client(index: number): Promise<void> {
    const kind = KINDS[index % KINDS.length]!;
    const clients = this.gateways.map((ports) => makeClient(kind, ports));
    let at = index % clients.length;
    while (!this.#stopping && this.failed.length === 0) {
      const number = this.#next++;
      const asked = question(MODELS[number % MODELS.length]!, number);
      const sentAtMs = performance.now();
      at = await this.#ask(clients, at, asked);
      this.longestMs = Math.max(this.longestMs, performance.now() - sentAtMs);
      const due = this.#waiters.filter((waiter) => waiter.at <= this.right || this.failed.length > 0);
      this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
      for (const { resolve } of due) resolve();
    }
    for (const client of clients) client.reset();
  }

  /** @returns whom to ask next */
  async #ask(clients: readonly Client[], from: number, asked: Question): Promise<number> {
    const said: string[] = [];
    for (let tried = 0; tried < clients.length; tried++) {
      const at = (from + tried) % clients.length;
      const outcome = await clients[at]!.send(asked);
      if (outcome.kind === 'right') {
        this.right++;
        if (tried > 0) this.moved++;
        return at;
      }
      said.push(`gateway-${at + 1}: ${wordsOf(outcome)}`);
      if (outcome.kind === 'unseen') this.unseen++;
      else if (outcome.kind !== 'unreached' && !(outcome.kind === 'refused' && outcome.code === 'UNAVAILABLE')) break;
    }
    this.failed.push(`${asked.model} ${asked.id}: ${said.join('; ')}`);
    return from;
  }
}

function wordsOf(outcome: Outcome): string {
  if (outcome.kind === 'refused') return `refused with ${outcome.code}: ${outcome.text}`;
  return outcome.kind === 'wrong' ? outcome.text : outcome.kind;
}
