/**
 * Clients that keep every gateway of a cluster busy, one question after the other each, until they are told to pause. One
 * that was not served takes a breath, as a decent client does, and asks the next question; a client whose request never
 * ends gives up after its limit, and the books call that a breach.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Draw } from '../support/draw.js';
import type { Books } from './books.js';
import { makeClient, type Client, type ClientKind } from './clients.js';
import { ECHO, question, TRIPLE, WIDE } from './questions.js';

/** Which kind of client asks which model. JSON is too slow a way to write a wide tensor. */
const CLIENTS: readonly (readonly [ClientKind, string])[] = [
  ['json', ECHO],
  ['json', ECHO],
  ['binary', ECHO],
  ['grpc', ECHO],
  ['json', TRIPLE],
  ['grpc', TRIPLE],
  ['binary', WIDE],
  ['grpc', WIDE],
];
const BREATH_MS = 50;
/** How much longer than a request may take its client waits, to tell what is late from what never comes. */
const PATIENCE_MS = 3000;
const LOOK_EVERY_MS = 500;
/** Questions stay exact in FP32. */
const MOST_QUESTIONS = 4_000_000;

interface Lane {
  readonly kind: ClientKind;
  readonly client: Client;
  readonly gateway: number;
  readonly model: string;
}

export class ClusterLoad {
  readonly #lanes: Lane[] = [];
  readonly #draw: Draw;
  #running: Promise<unknown> = Promise.resolve();
  #pausing = false;
  #next = 1;

  /**
   * @param gateways their ports, which they keep
   * @param copies of each kind of client at each gateway
   */
  constructor(
    private readonly books: Books,
    gateways: readonly { readonly http: number; readonly grpc: number }[],
    seed: number,
    copies = 1,
  ) {
    this.#draw = new Draw(seed, 7);
    gateways.forEach((ports, gateway) => {
      for (let copy = 0; copy < copies; copy++)
        for (const [kind, model] of CLIENTS) this.#lanes.push({ kind, client: makeClient(kind, ports), gateway, model });
    });
  }

  start(): void {
    this.#pausing = false;
    this.#running = Promise.all(this.#lanes.map((lane) => this.#keepAsking(lane)));
  }

  /** Resolves when nothing is under way any more. */
  async pause(): Promise<void> {
    this.#pausing = true;
    await this.#running;
  }

  async close(): Promise<void> {
    await this.pause();
    for (const { client } of this.#lanes) client.reset();
  }

  async #keepAsking({ kind, client, gateway, model }: Lane): Promise<void> {
    while (!this.#pausing && this.#next < MOST_QUESTIONS) {
      const asked = question(model, this.#next++);
      const open = this.books.begin(gateway, model, asked.id, kind);
      const patience = new AbortController();
      const outcome = await Promise.race([client.send(asked), this.#silence(open, patience.signal)]);
      patience.abort();
      if (outcome === 'silence') client.reset();
      this.books.end(open, outcome === 'silence' ? { kind: 'wrong', text: 'never answered' } : outcome);
      if (outcome === 'silence' || outcome.kind !== 'right') await delay(BREATH_MS + this.#draw.int(0, BREATH_MS));
    }
  }

  /** Resolves when the request should long have ended; never once `signal` has. */
  async #silence(open: Parameters<Books['limitMs']>[0], signal: AbortSignal): Promise<'silence'> {
    while (performance.now() - open.sentAtMs < this.books.limitMs(open) + PATIENCE_MS) {
      await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return new Promise(() => undefined);
    }
    return 'silence';
  }
}
